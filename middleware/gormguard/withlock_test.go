package gormguard_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/guard/guardtest"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// stock is the profile with a TTL that a test can wait for.
func stock() guard.Profile {
	p := guard.Stock()
	p.TTL = time.Second
	p.Wait = 20 * time.Second
	return p
}

// withAndWithout runs a test with the plugin and without.
func withAndWithout(t *testing.T, w world, run func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	t.Run("Plugin", func(t *testing.T) { run(t, w.fenced(t, gormguard.Require(&Item{}))) })
	t.Run("NoPlugin", func(t *testing.T) { run(t, w.unfenced(t)) })
}

func takeOne(_ context.Context, tx *gorm.DB) error {
	n, err := units(tx, "a")
	if err != nil {
		return err
	}
	return setUnits(tx, "a", n-1)
}

func TestWithLock_CommitsBeforeTheNextHolderReads(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			w.put(t, "a", 10)
			g, _ := guardtest.New(t, stock())
			var all []<-chan error
			for range 8 {
				all = append(all, later(func() error { return gormguard.WithLock(soon(t), g, db, "a", takeOne) }))
			}
			for _, done := range all {
				must(t, "WithLock", <-done)
			}
			if left := w.units(t, "a"); left != 2 {
				t.Errorf("got %d left, want 2", left)
			}
		})
	})
}

func TestWithLock_FencesBeforeTheFirstRead(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			w.put(t, "a", 10)
			g, _ := guardtest.New(t, stock(), guard.WithNamespace("shop"))
			err := gormguard.WithLock(soon(t), g, db, "a", func(ctx context.Context, tx *gorm.DB) error {
				if tx.Statement.Context != ctx || !g.Held(ctx, "a") {
					t.Error("tx does not carry the context of the hold")
				}
				return takeOne(ctx, tx)
			})
			must(t, "WithLock", err)
			newer := fencing.Grant{Resource: "shop:a", Token: 1 << 62, Origin: "memory/shop"}
			var r struct{ Origin string }
			must(t, "register", w.unfenced(t).Raw("SELECT origin FROM pawl_fences").Scan(&r).Error)
			newer.Origin = r.Origin
			must(t, "a later holder", setUnits(w.fenced(t).WithContext(fencing.NewContext(soon(t), newer)), "a", 5))
			ran := false
			err = gormguard.WithLock(soon(t), g, db, "a", func(context.Context, *gorm.DB) error { ran = true; return nil })
			wantIs(t, "a stale hold", err, fencing.ErrStale)
			if ran {
				t.Error("fn ran under a stale hold")
			}
			must(t, "reset", w.unfenced(t).Exec("DELETE FROM pawl_fences").Error)
		})
	})
}

func TestWithLock_RollsBack(t *testing.T) {
	boom := errors.New("boom")
	write := func(tx *gorm.DB) { _ = setUnits(tx, "a", 1) }
	onEach(t, func(t *testing.T, w world) {
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			w.put(t, "a", 10)
			g, sw := guardtest.New(t, stock())
			unchanged := func(when string) {
				t.Helper()
				if left := w.units(t, "a"); left != 10 {
					t.Errorf("%s: got %d left, want 10", when, left)
				}
				must(t, when+": the lock is free", g.WithLock(soon(t), "a", func(context.Context) error { return nil }))
			}
			err := gormguard.WithLock(soon(t), g, db, "a", func(_ context.Context, tx *gorm.DB) error { write(tx); return boom })
			if err != boom { //nolint:errorlint // as it is
				t.Errorf("got error %v, want fn's as it is", err)
			}
			unchanged("an error")
			panics(t, func() {
				_ = gormguard.WithLock(soon(t), g, db, "a", func(_ context.Context, tx *gorm.DB) error { write(tx); panic(boom) })
			})
			unchanged("a panic")
			<-later(func() error {
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = gormguard.WithLock(soon(t), g, db, "a", func(_ context.Context, tx *gorm.DB) error { write(tx); runtime.Goexit(); return nil })
				}()
				<-done
				return nil
			})
			unchanged("Goexit")
			err = gormguard.WithLock(soon(t), g, db, "a", func(ctx context.Context, tx *gorm.DB) error {
				write(tx)
				sw.Lose("a")
				<-ctx.Done()
				return nil
			})
			wantIs(t, "a loss before COMMIT", err, guard.ErrLost)
			known(t, err)
			unchanged("a loss before COMMIT")
			short, cancel := context.WithCancel(soon(t))
			err = gormguard.WithLock(short, g, db, "a", func(_ context.Context, tx *gorm.DB) error { write(tx); cancel(); return nil })
			wantIs(t, "the caller's end", err, context.Canceled)
			known(t, err)
			unchanged("the caller's end")
		})
	})
}

// known wants an error that says that nothing was committed.
func known(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, guard.ErrOutcomeUnknown) {
		t.Errorf("got error %v, want one with a known outcome", err)
	}
}

func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("got no panic, want fn's")
		}
	}()
	f()
}

func TestWithLock_IsReadCommitted(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		g, _ := guardtest.New(t, stock())
		other := w.unfenced(t)
		err := gormguard.WithLock(soon(t), g, w.unfenced(t), "a", func(_ context.Context, tx *gorm.DB) error {
			_, err := units(tx, "a")
			must(t, "read", err)
			must(t, "another's write", setUnits(other, "a", 5))
			n, err := units(tx, "a")
			if n != 5 {
				t.Errorf("got %d, want 5", n)
			}
			return err
		})
		must(t, "WithLock", err)
	}, "PostgresRepeatableRead", "MariaDB")
}

func TestWithLock_RefusesInvalidUse(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		g, _ := guardtest.New(t, stock())
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			fn := func(context.Context, *gorm.DB) error { t.Error("fn ran"); return nil }
			tx := db.Begin()
			defer tx.Rollback()
			prepared := tx.Session(&gorm.Session{PrepareStmt: true})
			wantIs(t, "a transaction", gormguard.WithLock(soon(t), g, tx, "a", fn), guard.ErrInvalid)
			wantIs(t, "a prepared transaction", gormguard.WithLock(soon(t), g, prepared, "a", fn), guard.ErrInvalid)
			wantIs(t, "no db", gormguard.WithLock(soon(t), g, nil, "a", fn), guard.ErrInvalid)
			wantIs(t, "an empty db", gormguard.WithLock(soon(t), g, &gorm.DB{}, "a", fn), guard.ErrInvalid)
			wantIs(t, "no guard", gormguard.WithLock(soon(t), nil, db, "a", fn), guard.ErrInvalid)
			wantIs(t, "no fn", gormguard.WithLock(soon(t), g, db, "a", nil), guard.ErrInvalid)
			wantIs(t, "no key", gormguard.WithLock(soon(t), g, db, "", fn), guard.ErrInvalid)
		})
	}, "SQLite")
}

func TestWithLock_WorksInEverySession(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			for name, session := range sessions() {
				reset(t, w)
				g, _ := guardtest.New(t, stock())
				err := gormguard.WithLock(soon(t), g, session(db), "a", func(_ context.Context, tx *gorm.DB) error {
					for _, o := range operations() {
						if err := o.run(session(tx)); err != nil {
							return errors.Join(errors.New(name+o.name), err)
						}
					}
					return nil
				})
				must(t, name, err)
				if _, err := units(w.unfenced(t), "a"); !errors.Is(err, gorm.ErrRecordNotFound) {
					t.Errorf("%s: got error %v, want the item deleted", name, err)
				}
			}
		})
	})
}

func TestWithLock_NestedHoldComesTooLate(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			g, _ := guardtest.New(t, stock())
			err := gormguard.WithLock(soon(t), g, db, "a", func(ctx context.Context, tx *gorm.DB) error {
				return g.WithLock(ctx, "b", func(ctx context.Context) error { return setUnits(tx.WithContext(ctx), "a", 1) })
			})
			wantIs(t, "a second lock inside the transaction", err, gormguard.ErrFenceLate)
			must(t, "both before it", g.WithLock(soon(t), "b", func(ctx context.Context) error {
				return gormguard.WithLock(ctx, g, db, "a", takeOne)
			}))
		})
	})
}
