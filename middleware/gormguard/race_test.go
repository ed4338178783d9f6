package gormguard_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
)

// sale is a read and a write of one holder, with time to think between.
type sale struct {
	db   *gorm.DB
	read int
}

func (s *sale) look(t *testing.T) {
	t.Helper()
	n, err := units(s.db, "a")
	must(t, "read", err)
	s.read = n
}

// interleave is what loses an update: both read before either writes. It returns
// how many sales were accepted.
func interleave(t *testing.T, older, newer *sale, write func(*sale) error) int {
	t.Helper()
	sold := 0
	older.look(t)
	newer.look(t)
	for _, s := range []*sale{older, newer} {
		if err := write(s); err == nil {
			sold++
		} else {
			t.Logf("refused: %v", err)
		}
	}
	return sold
}

func sell(s *sale) error { return setUnits(s.db, "a", s.read-1) }

func TestPlugin_LosesNoUpdate(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		sold := interleave(t, &sale{db: w.unfenced(t)}, &sale{db: w.unfenced(t)}, sell)
		if left := w.units(t, "a"); sold != 2 || left != 9 {
			t.Fatalf("without the fence: got %d sold and %d left, want the harm: 2 sold, 9 left", sold, left)
		}

		w.put(t, "a", 10)
		sold = interleave(t, &sale{db: w.unfenced(t).WithContext(held(ctx, "w", 1))}, &sale{db: w.unfenced(t).WithContext(held(ctx, "w", 2))}, checkThenSell)
		if left := w.units(t, "a"); sold != 2 || left != 9 {
			t.Fatalf("with check-on-write: got %d sold and %d left, want the harm: 2 sold, 9 left", sold, left)
		}

		w.put(t, "a", 10)
		older := &sale{db: w.fenced(t).WithContext(held(ctx, "a", 1))}
		newer := &sale{db: w.fenced(t).WithContext(held(ctx, "a", 2))}
		sold = interleave(t, older, newer, sell)
		if left := w.units(t, "a"); left != 10-sold || sold != 1 {
			t.Errorf("with the fence: got %d sold and %d left, want 1 and 9", sold, left)
		}
		wantIs(t, "the older holder's next write", sell(older), fencing.ErrStale)
		_, err := units(older.db, "a")
		wantIs(t, "the older holder's next read", err, fencing.ErrStale)
	})
}

// checkThenSell is a fence that compares the token when it writes: too late, since
// the newer holder has read and not yet written.
func checkThenSell(s *sale) error {
	g := fencing.Grants(s.db.Statement.Context)[0]
	return s.db.Transaction(func(tx *gorm.DB) error {
		if err := admit(tx, g); err != nil {
			return err
		}
		return sell(&sale{db: tx, read: s.read})
	})
}

// admit is the simple register: compared and raised in the transaction that
// writes.
func admit(tx *gorm.DB, g fencing.Grant) error {
	var r SimpleFence
	if err := tx.Where(&SimpleFence{Resource: g.Resource}).FirstOrInit(&r).Error; err != nil {
		return err
	}
	if r.Token > int64(g.Token) {
		return fencing.ErrStale
	}
	r.Token = int64(g.Token)
	return tx.Save(&r).Error
}

func TestPlugin_LaterHolderWaitsForOpenTransaction(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := soon(t)
		older := w.fenced(t).WithContext(held(ctx, "a", 1)).Begin()
		must(t, "begin", older.Error)
		n, err := units(older, "a")
		must(t, "read", err)

		var seen int
		newer := w.fenced(t).WithContext(held(ctx, "a", 2))
		done := later(func() (err error) { seen, err = units(newer, "a"); return err })
		waits(t, "the later holder", done)
		must(t, "write", setUnits(older, "a", n-1))
		waits(t, "the later holder", done)
		must(t, "commit", older.Commit().Error)
		must(t, "the later holder's read", <-done)
		if seen != 9 {
			t.Errorf("the later holder read %d, want 9: what the older one committed", seen)
		}
	})
}

func TestPlugin_HoldersOfOneHoldDoNotWait(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		ctx := held(soon(t), "a", 1)
		w.put(t, "b", 10)
		db := w.fenced(t).WithContext(ctx)
		first := db.Begin()
		must(t, "begin", first.Error)
		defer first.Rollback()
		must(t, "write", setUnits(first, "a", 1))
		other := w.fenced(t) // its process does not know that the register was raised
		must(t, "write of the same hold elsewhere", setUnits(other.WithContext(ctx), "b", 1))
		second := db.Begin()
		must(t, "second begin", second.Error)
		must(t, "write in a second transaction", setUnits(second, "b", 2))
		must(t, "commit", second.Commit().Error)
	}, "PostgresReadCommitted", "PostgresRepeatableRead", "MariaDB")
}

func TestPlugin_SameValueIsNotStale(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		ctx := held(soon(t), "a", 1)
		db := w.fenced(t).WithContext(ctx)
		for range 3 {
			must(t, "write of the value that is there", setUnits(db, "a", 10))
			must(t, "in a transaction", db.Transaction(func(tx *gorm.DB) error { return setUnits(tx, "a", 10) }))
		}
	})
}

func TestPlugin_GrantsInAnyOrderDoNotDeadlock(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		w.put(t, "b", 10)
		one, two := w.fenced(t), w.fenced(t)
		for round := range rounds() {
			n := uint64(2*round + 1)
			forth := fencing.NewContext(held(soon(t), "a", n), grant("b", n))
			back := fencing.NewContext(held(soon(t), "b", n+1), grant("a", n+1))
			first := later(func() error { return sellBoth(forth, one) })
			if err := sellBoth(back, two); err != nil {
				t.Fatalf("round %d: the later holder: got error %v, want none", round, err)
			}
			if err := <-first; err != nil {
				wantIs(t, "the older holder", err, fencing.ErrStale)
			}
		}
	})
}

func sellBoth(ctx context.Context, db *gorm.DB) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := setUnits(tx, "a", 1); err != nil {
			return err
		}
		return setUnits(tx, "b", 1)
	})
}

func TestPlugin_ReadOnlyTransactionsAreChecked(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		readOnly := &sql.TxOptions{ReadOnly: true}
		if strings.HasPrefix(w.name, "Postgres") {
			tx := w.unfenced(t).Begin(readOnly)
			if err := tx.Exec("SELECT * FROM pawl_fences FOR SHARE").Error; err == nil {
				t.Fatal("FOR SHARE: got no error, want the database's: it is read-only")
			}
			tx.Rollback()
		}
		ctx := soon(t)
		must(t, "the older holder", w.fenced(t).WithContext(held(ctx, "a", 1)).Begin(readOnly).Rollback().Error)
		newer := w.fenced(t).WithContext(held(ctx, "a", 2)).Begin(readOnly)
		must(t, "the newer holder", newer.Error)
		_, err := units(newer, "a")
		must(t, "read", err)
		must(t, "commit", newer.Commit().Error)
		wantIs(t, "the older holder", w.fenced(t).WithContext(held(ctx, "a", 1)).Begin(readOnly).Error, fencing.ErrStale)
	})
}
