package gormguard_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/internal/hold"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// forASecond is a hold whose TTL is one second.
func forASecond(ctx context.Context, key string, n uint64) context.Context {
	return context.WithValue(held(ctx, key, n), hold.TTLKey(), time.Second)
}

// A frozen holder sends nothing, not even the end of its connection.
func TestPlugin_FrozenTransactionDoesNotBlockForEver(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		unlimited := w.unfenced(t).Begin()
		must(t, "without limits", gormguard.LockRow(unlimited, "shop:a"))
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := setUnits(w.fenced(t).WithContext(held(ctx, "a", 1)), "a", 1); err == nil || ctx.Err() == nil {
			t.Fatalf("without limits: got error %v, want the harm: the next holder waits", err)
		}
		must(t, "rollback", unlimited.Rollback().Error)

		frozen := w.fenced(t).WithContext(forASecond(soon(t), "a", 2)).Begin()
		must(t, "write", setUnits(frozen, "a", 2))
		start := time.Now()
		must(t, "the next holder", setUnits(w.fenced(t).WithContext(held(soon(t), "a", 3)), "a", 3))
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("the next holder waited %v, want about a second", took)
		}
		if err := frozen.Commit().Error; err == nil {
			t.Error("the frozen holder's COMMIT: got no error, want one")
		}
		if left := w.units(t, "a"); left != 3 {
			t.Errorf("got %d left, want 3", left)
		}
	}, "PostgresReadCommitted", "MariaDB")
}

func TestPlugin_BoundsWaitsForLocks(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		other := w.unfenced(t).Begin()
		must(t, "lock", setUnits(other, "a", 1))
		start := time.Now()
		err := setUnits(w.fenced(t).WithContext(forASecond(soon(t), "a", 1)), "a", 2)
		if took := time.Since(start); err == nil || took > 8*time.Second {
			t.Errorf("got error %v after %v, want the database's lock timeout after about a second", err, took)
		}
		must(t, "rollback", other.Rollback().Error)
	}, "PostgresReadCommitted", "MariaDB")
}

// settings are the limits of a pool's one session.
func settings(t *testing.T, db *gorm.DB) string {
	t.Helper()
	text := "SELECT concat(current_setting('lock_timeout'), ' ', current_setting('idle_in_transaction_session_timeout'))"
	if db.Name() == "mysql" {
		text = "SELECT concat(@@innodb_lock_wait_timeout, ' ', @@idle_transaction_timeout)"
	}
	var s string
	must(t, "settings", db.Raw(text).Row().Scan(&s))
	return s
}

func TestPlugin_LeavesTheSessionAsItWas(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t)
		raw(t, db).SetMaxOpenConns(1)
		before := settings(t, db)
		ctx := forASecond(soon(t), "a", 1)
		tx := db.WithContext(ctx).Begin()
		if inside := settings(t, tx); inside == before {
			t.Errorf("inside: got %q, as before; want limits", inside)
		}
		must(t, "commit", tx.Commit().Error)
		same := func(when string) {
			t.Helper()
			if after := settings(t, db); after != before {
				t.Errorf("%s: got %q, want %q", when, after, before)
			}
		}
		same("after COMMIT")
		tx = db.WithContext(ctx).Begin()
		must(t, "rollback", tx.Rollback().Error)
		same("after ROLLBACK")
		short, cancel := context.WithCancel(ctx)
		must(t, "begin", db.WithContext(short).Begin().Error)
		cancel()
		same("after the end of the context")
		must(t, "write", setUnits(db.WithContext(ctx), "a", 1))
		same("after a statement")
		err := setUnits(db.WithContext(held(ctx, "a", 2)), "none; syntax", 1)
		must(t, "write", err)
		if err := setUnits(db.WithContext(ctx), "a", 1); err == nil {
			t.Error("stale: got no error")
		}
		same("after a refusal")
	}, "PostgresReadCommitted", "MariaDB")
}

func TestPlugin_KeepsStricterLimits(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t)
		raw(t, db).SetMaxOpenConns(1)
		set, want := "SET lock_timeout = '200ms'; SET idle_in_transaction_session_timeout = '7s'", "200ms 7s"
		if db.Name() == "mysql" {
			set, want = "SET SESSION innodb_lock_wait_timeout = 3, SESSION idle_transaction_timeout = 7", "3 7"
		}
		must(t, "set", db.Exec(set).Error)
		tx := db.WithContext(held(soon(t), "a", 1)).Begin()
		if got := settings(t, tx); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		must(t, "commit", tx.Commit().Error)
	}, "PostgresReadCommitted", "MariaDB")
}
