package gormstore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/fencing"
)

// renamed is a dialect that the store does not know.
type renamed struct{ gorm.Dialector }

func (renamed) Name() string { return "oracle" }

func TestNew_RefusesWhatCannotHoldALock(t *testing.T) {
	d := sqliteDB()
	db := d.connect(t, d.empty(t))
	failed := db.Session(&gorm.Session{})
	_ = failed.AddError(errors.New("an earlier failure"))
	foreign := db.Session(&gorm.Session{})
	config := *foreign.Config
	config.Dialector = renamed{config.Dialector}
	foreign.Config = &config
	tx := db.Begin()
	defer tx.Rollback()
	prepared := tx.Session(&gorm.Session{Initialized: true})
	prepared.Statement.ConnPool = &gorm.PreparedStmtTX{Tx: tx.Statement.ConnPool.(*sql.Tx)}

	for _, test := range []struct {
		name string
		db   *gorm.DB
		want string
	}{
		{"Nil", nil, "nil"},
		{"Zero", &gorm.DB{}, "gorm.Open"},
		{"NotOpen", &gorm.DB{Config: &gorm.Config{}}, "gorm.Open"},
		{"DryRun", db.Session(&gorm.Session{DryRun: true}), "DryRun"},
		{"Failed", failed, "an earlier failure"},
		{"Transaction", tx, "transaction"},
		{"PreparedTransaction", prepared, "transaction"},
		{"OtherDialect", foreign, `"oracle"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := gormstore.New(test.db); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New: got %v, want an error with %q", err, test.want)
			}
			if err := gormstore.Migrate(t.Context(), test.db); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Migrate: got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestNew_DoesNotUseTheNetwork(t *testing.T) {
	db, err := gorm.Open(gormpg.Open("postgres://nobody@127.0.0.1:1/none"), &gorm.Config{DisableAutomaticPing: true, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer pool(t, db).Close()
	s := storeOn(t, db)
	want := driver.Traits{Name: "postgres", Consistency: driver.Primary, MinTTL: s.Traits().MinTTL}
	if got := s.Traits(); got != want {
		t.Errorf("Traits: got %+v, want %+v", got, want)
	}
	if _, err := s.Acquire(t.Context(), request("k")); err == nil || isVerdict(err) {
		t.Errorf("Acquire without a server: got %v, want an error that is no verdict", err)
	}
}

func TestStore_RefusesBadRequestsBeforeAnyCall(t *testing.T) {
	d := sqliteDB()
	dsn := d.empty(t)
	d.migrated(t, dsn)
	db, spy := d.watched(t, dsn)
	s := storeOn(t, db)
	for _, test := range []struct {
		name   string
		change func(*driver.Request)
	}{
		{"NoKey", func(r *driver.Request) { r.Key = "" }},
		{"LongKey", func(r *driver.Request) { r.Key = strings.Repeat("k", 641) }},
		{"NoOwner", func(r *driver.Request) { r.Owner = "" }},
		{"LongOwner", func(r *driver.Request) { r.Owner = strings.Repeat("o", 256) }},
		{"OwnerWithNUL", func(r *driver.Request) { r.Owner += "\x00" }},
		{"OwnerNotUTF8", func(r *driver.Request) { r.Owner += "\xff" }},
		{"NoTTL", func(r *driver.Request) { r.TTL = 0 }},
		{"NegativeTTL", func(r *driver.Request) { r.TTL = -1 }},
		{"ShortTTL", func(r *driver.Request) { r.TTL = s.Traits().MinTTL - 1 }},
		{"Generation", func(r *driver.Request) { r.Generation = 64 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := request("k")
			test.change(&r)
			if _, err := s.Acquire(t.Context(), r); err == nil || isVerdict(err) {
				t.Errorf("Acquire: got %v, want an error that is no verdict", err)
			}
			if seen := spy.take(); len(seen) != 0 {
				t.Errorf("statements: got %d, want 0", len(seen))
			}
		})
	}
}

// A plugin that breaks every statement of GORM's, or replaces its pool, does not
// meet those of the store.
func TestStore_BypassesPlugins(t *testing.T) {
	d := sqliteDB()
	dsn := d.empty(t)
	_, db := d.migrated(t, dsn)
	broken := func(tx *gorm.DB) { _ = tx.AddError(errors.New("a plugin refused it")) }
	callbacks := db.Callback()
	for _, err := range []error{
		callbacks.Raw().Before("gorm:raw").Register("broken", broken),
		callbacks.Row().Before("gorm:row").Register("broken", broken),
		callbacks.Query().Before("gorm:query").Register("broken", broken),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	db.ConnPool = refusing{ConnPool: db.ConnPool, pool: pool(t, db)}
	db.Statement.ConnPool = db.ConnPool
	s := storeOn(t, db)
	ctx := fencing.NewContext(t.Context(), fencing.Grant{Resource: "k", Token: 1, Origin: "elsewhere"})
	g, err := s.Acquire(ctx, request("k"))
	if err != nil {
		t.Fatalf("Acquire under a plugin that refuses statements: got %v, want nil", err)
	}
	if _, err := s.Renew(ctx, g); err != nil {
		t.Errorf("Renew: got %v, want nil", err)
	}
	release(t, s, g)
}

// refusing is what a plugin puts in front of the pool.
type refusing struct {
	gorm.ConnPool
	pool *sql.DB
}

func (r refusing) GetDBConn() (*sql.DB, error) { return r.pool, nil }

func (refusing) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.New("a plugin refused it")
}

func (refusing) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("a plugin refused it")
}
