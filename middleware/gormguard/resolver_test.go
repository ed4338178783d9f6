package gormguard_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// resolver does what gorm.io/plugin/dbresolver does with one primary and one
// replica, under the same names.
type resolver struct {
	primary, replica gorm.ConnPool
	dialector        gorm.Dialector // of the replica
}

func (*resolver) Name() string { return "gorm:db_resolver" }

func (r *resolver) Initialize(db *gorm.DB) error {
	r.primary = db.ConnPool
	config := *db.Config // with the plugins there are: they are initialized again, on the replica
	replica, err := gorm.Open(r.dialector, &config)
	if err != nil {
		return err
	}
	r.replica = replica.ConnPool
	cb := db.Callback()
	for _, err := range []error{
		cb.Create().Before("*").Register("gorm:db_resolver", r.source),
		cb.Query().Before("*").Register("gorm:db_resolver", r.read),
		cb.Update().Before("*").Register("gorm:db_resolver", r.source),
		cb.Delete().Before("*").Register("gorm:db_resolver", r.source),
		cb.Row().Before("*").Register("gorm:db_resolver", r.read),
		cb.Raw().Before("*").Register("gorm:db_resolver", r.source),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) source(db *gorm.DB) { r.resolve(db, r.primary) }

func (r *resolver) read(db *gorm.DB) {
	if _, ok := db.Statement.Settings.Load("gorm:db_resolver:write"); ok {
		r.resolve(db, r.primary)
	} else {
		r.resolve(db, r.replica)
	}
}

func (*resolver) resolve(db *gorm.DB, pool gorm.ConnPool) {
	if _, tx := db.Statement.ConnPool.(gorm.TxCommitter); !tx {
		db.Statement.ConnPool = pool
	}
}

func TestPlugin_ReadsUnderAHoldOnThePrimary(t *testing.T) {
	for name, order := range map[string]func(db *gorm.DB, r *resolver) error{
		"GuardFirst": func(db *gorm.DB, r *resolver) error {
			if err := db.Use(gormguard.Plugin(gormguard.Require(&Item{}))); err != nil {
				return err
			}
			return db.Use(r)
		},
		"ResolverFirst": func(db *gorm.DB, r *resolver) error {
			if err := db.Use(r); err != nil {
				return err
			}
			return db.Use(gormguard.Plugin(gormguard.Require(&Item{})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := databases()[0]
			primary, replica := world{d, d.dsn(t)}, world{d, d.dsn(t)}
			primary.prepare(t)
			replica.prepare(t)
			replica.put(t, "a", 99) // it lags
			db := primary.unfenced(t)
			r := &resolver{dialector: d.dialer(replica.addr)}
			must(t, "use", order(db, r))
			t.Cleanup(func() { closePool(t, r.replica) })

			if n, err := units(db, "a"); err != nil || n != 99 {
				t.Fatalf("outside a hold: got %d, %v; want the replica's 99", n, err)
			}
			wantIs(t, "a write outside a hold", setUnits(db, "a", 1), gormguard.ErrUnfenced)
			h := db.WithContext(held(soon(t), "a", 2))
			if n, err := units(h, "a"); err != nil || n != 10 {
				t.Errorf("Take: got %d, %v; want the primary's 10", n, err)
			}
			var n int
			if err := h.Raw("SELECT units FROM items").Row().Scan(&n); err != nil || n != 10 {
				t.Errorf("Row: got %d, %v; want the primary's 10", n, err)
			}
			must(t, "write", setUnits(h, "a", 9))
			_, err := units(db.WithContext(held(soon(t), "a", 1)), "a")
			wantIs(t, "a stale read", err, fencing.ErrStale)
			var raised int64
			must(t, "replica", replica.unfenced(t).Table("pawl_fences").Count(&raised).Error)
			if raised != 0 {
				t.Error("the register of the replica was raised")
			}
		})
	}
}

func closePool(t *testing.T, pool gorm.ConnPool) {
	t.Helper()
	db := &gorm.DB{Config: &gorm.Config{ConnPool: pool}}
	_ = raw(t, db).Close()
}

func TestPlugin_LeavesPawlsOwnTablesAlone(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t)
		must(t, "the newer holder", setUnits(db.WithContext(held(soon(t), "a", 2)), "a", 1))
		stale := held(soon(t), "a", 1)
		var n int64
		must(t, "by table", db.WithContext(stale).Table("pawl_locks").Count(&n).Error)
		must(t, "by text", db.WithContext(stale).Exec("DELETE FROM pawl_locks WHERE token < 0").Error)
		must(t, "rows", db.WithContext(stale).Raw("SELECT count(*) FROM pawl_locks").Row().Scan(&n))
		tx := db.Begin()
		defer tx.Rollback()
		must(t, "in a transaction that knows nothing of the hold", tx.WithContext(stale).Exec("DELETE FROM pawl_locks WHERE token < 0").Error)
		must(t, "the store on the same db", gormstore.Migrate(stale, db))
	})
}

func TestPlugin_GuardsSessionsMadeElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.unfenced(t)
		before := db.WithContext(t.Context())
		use(t, db, gormguard.Require(&Item{}))
		ctx := held(soon(t), "a", 2)
		must(t, "an older session", setUnits(before.WithContext(ctx), "a", 1))
		wantIs(t, "an older session, stale", setUnits(before.WithContext(held(soon(t), "a", 1)), "a", 1), fencing.ErrStale)
		wantIs(t, "an older session, outside a hold", setUnits(before, "a", 1), gormguard.ErrUnfenced)
		tx := before.WithContext(ctx).Begin()
		wantIs(t, "its transaction, which nobody saw begin", setUnits(tx, "a", 1), gormguard.ErrFenceLate)
		tx.Rollback()

		conn := func(n uint64) error {
			return db.WithContext(held(soon(t), "a", n)).Connection(func(tx *gorm.DB) error {
				return tx.Session(&gorm.Session{}).Model(&Item{}).Where("sku = ?", "a").Update("units", 4).Error
			})
		}
		must(t, "Connection", conn(2))
		wantIs(t, "Connection, stale", conn(1), fencing.ErrStale)
	})
}

func TestPlugin_RefusesAnUnknownDialect(t *testing.T) {
	db, err := gorm.Open(named{databases()[0].dialer("file:" + servertest.SQLiteFile(t))})
	must(t, "open", err)
	defer func() { _ = raw(t, db).Close() }()
	if err := db.Use(gormguard.Plugin()); err == nil {
		t.Error("got no error, want one that names the dialects")
	}
}

type named struct{ gorm.Dialector }

func (named) Name() string { return "oracle" }
