package gormguard_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/guard/guardtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// watched is a store that tells of a release before it happens.
type watched struct {
	*memstore.Store
	release func()
}

func (w *watched) Release(ctx context.Context, g driver.Grant) error {
	w.release()
	return w.Store.Release(ctx, g)
}

func on(t *testing.T, store driver.Backend) *guard.Guard {
	t.Helper()
	p := stock()
	p.Ledger, p.Limiter = nil, nil
	g, err := guard.New(p, guard.On(store), guard.SingleProcess(), guard.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, "guard", err)
	t.Cleanup(func() { must(t, "close", g.Close(context.Background())) })
	return g
}

func TestWithLock_UnlocksAfterTheTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		withAndWithout(t, w, func(t *testing.T, db *gorm.DB) {
			released := 0
			g := on(t, &watched{memstore.New(), func() {
				released++
				if n := raw(t, db).Stats().InUse; n != 0 {
					t.Errorf("at the release: got %d connections in use, want 0", n)
				}
			}})
			must(t, "commit", gormguard.WithLock(soon(t), g, db, "a", takeOne))
			boom := errors.New("boom")
			wantIs(t, "rollback", gormguard.WithLock(soon(t), g, db, "a", func(ctx context.Context, tx *gorm.DB) error {
				return errors.Join(takeOne(ctx, tx), boom)
			}), boom)
			panics(t, func() {
				_ = gormguard.WithLock(soon(t), g, db, "a", func(ctx context.Context, tx *gorm.DB) error {
					_ = takeOne(ctx, tx)
					panic(boom)
				})
			})
			if released != 3 {
				t.Errorf("got %d releases, want 3", released)
			}
		})
	})
}

// losing is a store whose every release finds the lease gone.
type losing struct{ *memstore.Store }

func (l *losing) Release(ctx context.Context, g driver.Grant) error {
	return errors.Join(l.Store.Release(ctx, g), driver.ErrLost)
}

func TestWithLock_LossAfterCommitIsNoError(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		g := on(t, &losing{memstore.New()})
		err := g.WithLock(soon(t), "a", func(context.Context) error { return nil })
		wantIs(t, "guard alone", err, guard.ErrLost)
		must(t, "confirmed", gormguard.WithLock(soon(t), g, w.unfenced(t), "a", takeOne))
		if left := w.units(t, "a"); left != 9 {
			t.Errorf("got %d left, want 9", left)
		}
	}, "SQLite", "PostgresReadCommitted")
}

func TestWithLock_LostReplyOfCommitIsUnknown(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		proxy, through := servertest.NewSQLProxy(t, w.addr)
		far := world{w.database, through}
		commit := "COMMIT"
		if w.name != "MariaDB" {
			commit = "commit"
		}
		withAndWithout(t, far, func(t *testing.T, db *gorm.DB) {
			w.put(t, "a", 10)
			g, _ := guardtest.New(t, stock())
			err := gormguard.WithLock(soon(t), g, db, "a", func(ctx context.Context, tx *gorm.DB) error {
				proxy.DropReplyAfter([]byte(commit))
				return takeOne(ctx, tx)
			})
			wantIs(t, "COMMIT without an answer", err, guard.ErrOutcomeUnknown)
			if left := w.units(t, "a"); left != 9 {
				t.Errorf("got %d left, want 9: the answer was lost, not the request", left)
			}
		})
	}, "PostgresReadCommitted", "MariaDB")
}

func TestWithLock_RefusedCommitIsNotUnknown(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		g, _ := guardtest.New(t, stock())
		err := gormguard.WithLock(soon(t), g, w.unfenced(t), "a", func(_ context.Context, tx *gorm.DB) error {
			_ = setUnits(tx, "a", 1)
			_ = tx.Create(&Item{SKU: "a"}).Error // fails, and fn does not look
			return nil
		})
		if err == nil || errors.Is(err, guard.ErrOutcomeUnknown) {
			t.Errorf("got error %v, want one that says rolled back", err)
		}
		if left := w.units(t, "a"); left != 10 {
			t.Errorf("got %d left, want 10", left)
		}
	}, "PostgresReadCommitted")
}
