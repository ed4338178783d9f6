package gormguard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// twoSales begins two transactions and lets each lock, read and write, the second
// as soon as it can. lock is called in both before either has written.
func twoSales(t *testing.T, w world, lock func(tx *gorm.DB) error) {
	t.Helper()
	one, two := w.unfenced(t).Begin(), w.unfenced(t)
	must(t, "first lock", lock(one))
	n, err := units(one, "a")
	must(t, "first read", err)
	read := make(chan struct{})
	done := later(func() error {
		return two.Transaction(func(tx *gorm.DB) error {
			if err := lock(tx); err != nil {
				return err
			}
			n, err := units(tx, "a")
			close(read)
			if err != nil {
				return err
			}
			return setUnits(tx, "a", n-1)
		})
	})
	select { // a lock that keeps the second out lets it read only after the COMMIT
	case <-read:
	case <-time.After(150 * time.Millisecond):
	}
	must(t, "first write", setUnits(one, "a", n-1))
	must(t, "first commit", one.Commit().Error)
	must(t, "second", <-done)
}

func TestLockRow_ExcludesOnAKeyNeverUsed(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		if w.name == "PostgresReadCommitted" {
			twoSales(t, w, func(tx *gorm.DB) error {
				return tx.Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]SimpleFence{}, "resource = ?", "k").Error
			})
			if left := w.units(t, "a"); left != 9 {
				t.Fatalf("with FOR UPDATE on a missing row: got %d left, want the harm: 9 of 10 after two sales", left)
			}
			w.put(t, "a", 10)
		}
		twoSales(t, w, func(tx *gorm.DB) error { return gormguard.LockRow(tx, "k") })
		if left := w.units(t, "a"); left != 8 {
			t.Errorf("got %d left, want 8", left)
		}
	}, "SQLite", "PostgresReadCommitted", "MariaDB")
}

func TestLockRow_KeepsOutTheHoldersOfThatResource(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t).WithContext(held(soon(t), "a", 7))
		must(t, "the holder", setUnits(db, "a", 1))
		tx := w.unfenced(t).Begin()
		must(t, "LockRow", gormguard.LockRow(tx, "shop:a"))
		done := later(func() error { return setUnits(db, "a", 2) })
		waits(t, "the holder", done)
		must(t, "commit", tx.Commit().Error)
		must(t, "the holder: its token is still the newest", <-done)
	})
}

func TestLockRow_RefusesInvalidUse(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		for name, db := range map[string]*gorm.DB{"plugin": w.fenced(t), "no plugin": w.unfenced(t), "nil": nil, "empty": {}} {
			wantIs(t, name+" outside a transaction", gormguard.LockRow(db, "k"), guard.ErrInvalid)
		}
		tx := w.unfenced(t).Begin()
		defer tx.Rollback()
		for _, key := range []string{"", "a\x00b", "\xff", strings.Repeat("k", 601)} {
			wantIs(t, "key", gormguard.LockRow(tx, key), guard.ErrInvalid)
		}
		must(t, "the longest key", gormguard.LockRow(tx, strings.Repeat("k", 600)))
		failed := tx.Where("nonsense nonsense").Find(&[]Item{})
		if err := gormguard.LockRow(failed, "k"); !errors.Is(err, failed.Error) {
			t.Errorf("got error %v, want the one that tx carries", err)
		}
	}, "SQLite")
}

func TestLockRow_OppositeOrdersAreADeadlock(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		one, two := w.unfenced(t).Begin(), w.unfenced(t).Begin()
		must(t, "one, a", gormguard.LockRow(one, "a"))
		must(t, "two, b", gormguard.LockRow(two, "b"))
		done := later(func() error { return errors.Join(gormguard.LockRow(one, "b"), one.Rollback().Error) })
		second := gormguard.LockRow(two, "a")
		two.Rollback()
		if first := <-done; first == nil && second == nil {
			t.Error("got no error, want a deadlock: the order is the caller's")
		}
	}, "PostgresReadCommitted", "MariaDB")
}
