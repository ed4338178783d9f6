package gormguard_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// lateSale begins and reads, then takes the lock (another has sold meanwhile),
// reads again and writes.
func lateSale(ctx context.Context, t *testing.T, db *gorm.DB, w world) error {
	t.Helper()
	tx := db.WithContext(ctx).Begin()
	must(t, "begin", tx.Error)
	defer tx.Rollback()
	first, err := units(tx, "a")
	must(t, "read before the lock", err)
	must(t, "another holder's sale", setUnits(w.fenced(t).WithContext(held(ctx, "a", 1)), "a", 9))
	locked := tx.WithContext(held(ctx, "a", 2))
	if _, err := units(locked, "a"); err != nil {
		return err
	}
	if err := setUnits(locked, "a", first-1); err != nil {
		return err
	}
	return tx.Commit().Error
}

func TestPlugin_RefusesAHoldTakenAfterBegin(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		err := lateSale(ctx, t, w.unfenced(t), w)
		left := w.units(t, "a")
		switch w.name {
		case "PostgresRepeatableRead", "SQLite": // these notice by themselves
			if err == nil {
				t.Errorf("without the fence: got no error, want the database's own")
			}
		default:
			if err != nil || left != 9 {
				t.Fatalf("without the fence: got error %v and %d left, want the harm: 9 left of 10 after two sales", err, left)
			}
		}

		w.put(t, "a", 10)
		err = lateSale(ctx, t, w.fenced(t), w)
		wantIs(t, "with the fence", err, gormguard.ErrFenceLate)
		if left := w.units(t, "a"); left != 9 {
			t.Errorf("got %d left, want 9", left)
		}
	})
}

func TestPlugin_RefusesALateHoldInEveryStatement(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t)
		for _, o := range operations() {
			t.Run(o.name, func(t *testing.T) {
				ctx := soon(t)
				tx := db.WithContext(held(ctx, "a", 1)).Begin()
				must(t, "begin", tx.Error)
				defer tx.Rollback()
				more := fencing.NewContext(held(ctx, "a", 1), grant("b", 1))
				wantIs(t, "another hold", o.run(tx.WithContext(more)), gormguard.ErrFenceLate)
				wantIs(t, "a later token", o.run(tx.WithContext(held(ctx, "a", 2))), gormguard.ErrFenceLate)
			})
		}
	}, "SQLite", "PostgresReadCommitted")
}

func TestPlugin_NestedTransactionDoesNotAdmitANewHold(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		tx := w.fenced(t).WithContext(ctx).Begin()
		must(t, "begin", tx.Error)
		err := tx.WithContext(held(ctx, "a", 1)).Transaction(func(tx *gorm.DB) error { return setUnits(tx, "a", 1) })
		wantIs(t, "a hold in a nested transaction", err, gormguard.ErrFenceLate)
		must(t, "rollback", tx.Rollback().Error)
	})
}

// rewound raises the register inside a savepoint, goes back to it, lets a newer
// holder write, and then writes.
func rewound(t *testing.T, raise func() error, tx *gorm.DB, newer func() error, write func() error) error {
	t.Helper()
	must(t, "savepoint", tx.SavePoint("sp1").Error)
	if err := raise(); err != nil {
		return err
	}
	must(t, "rollback to savepoint", tx.RollbackTo("sp1").Error)
	must(t, "the newer holder", newer())
	if err := write(); err != nil {
		return err
	}
	return tx.Commit().Error
}

func TestPlugin_RemembersNothingAcrossASavepoint(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		if w.name != "SQLite" { // one writer: nobody else writes before the end of the transaction
			db := w.unfenced(t)
			tx := db.Begin()
			g1, g2 := grant("a", 1), grant("a", 2)
			err := rewound(t, func() error { return admit(tx, g1) }, tx, func() error {
				return db.Transaction(func(tx *gorm.DB) error {
					if err := admit(tx, g2); err != nil {
						return err
					}
					return setUnits(tx, "b", 9)
				})
			}, func() error { return setUnits(tx, "a", 9) })
			if err != nil {
				t.Fatalf("with a raise in the transaction: got error %v, want the harm: the older holder writes after the newer", err)
			}
		}

		w.put(t, "a", 10)
		older, newer := w.fenced(t), w.fenced(t)
		tx := older.WithContext(ctx).Begin()
		late := tx.WithContext(held(ctx, "a", 1))
		raise := func() error {
			wantIs(t, "a raise in a savepoint", setUnits(late, "a", 1), gormguard.ErrFenceLate)
			return nil
		}
		err := rewound(t, raise, tx, func() error { return setUnits(newer.WithContext(held(ctx, "a", 2)), "a", 9) },
			func() error { return setUnits(late, "a", 8) })
		wantIs(t, "the older transaction", err, gormguard.ErrFenceLate)
		must(t, "rollback", tx.Rollback().Error)
		wantIs(t, "the older holder", setUnits(older.WithContext(held(ctx, "a", 1)), "a", 8), fencing.ErrStale)
		if left := w.units(t, "a"); left != 9 {
			t.Errorf("got %d left, want 9", left)
		}
	})
}

func TestPlugin_RemembersNothingAcrossARollback(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		older := w.fenced(t).WithContext(held(ctx, "a", 1))
		tx := older.Begin()
		must(t, "write", setUnits(tx, "a", 1))
		must(t, "rollback", tx.Rollback().Error)
		must(t, "the newer holder", setUnits(w.fenced(t).WithContext(held(ctx, "a", 2)), "a", 9))
		wantIs(t, "the older holder's next transaction", older.Begin().Error, fencing.ErrStale)
	})
}

func TestPlugin_NestedRollbackKeepsTheFence(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		tx := w.fenced(t).WithContext(held(ctx, "a", 1)).Begin()
		must(t, "begin", tx.Error)
		boom := tx.Transaction(func(tx *gorm.DB) error {
			must(t, "nested write", setUnits(tx, "a", 1))
			return guard.ErrBusy // any
		})
		wantIs(t, "nested", boom, guard.ErrBusy)
		newer := w.fenced(t).WithContext(held(ctx, "a", 2))
		done := later(func() error { return setUnits(newer, "a", 7) })
		waits(t, "the newer holder", done)
		must(t, "write", setUnits(tx, "a", 8))
		must(t, "commit", tx.Commit().Error)
		must(t, "the newer holder", <-done)
		if left := w.units(t, "a"); left != 7 {
			t.Errorf("got %d left, want 7", left)
		}
	})
}
