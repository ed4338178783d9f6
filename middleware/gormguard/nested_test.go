package gormguard_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

// outer uses db, not tx, inside a transaction of the same hold.
func outer(ctx context.Context, db *gorm.DB, o operation) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := setUnits(tx, "a", 1); err != nil {
			return err
		}
		return o.run(db.WithContext(ctx))
	})
}

func other() (read, write operation) {
	read = operation{"read", func(db *gorm.DB) error { _, err := units(db, "b"); return err }}
	write = operation{"write", func(db *gorm.DB) error { return setUnits(db, "b", 1) }}
	return read, write
}

func TestPlugin_OuterDatabaseInsideATransactionDoesNotHang(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		w.put(t, "b", 10)
		read, write := other()
		if w.name == "SQLite" {
			outerFails(t, w.fenced(t), write)
			return
		}
		exclusiveHangs(t, w)
		db := w.fenced(t)
		must(t, "outer read", outer(held(soon(t), "a", 1), db, read))
		must(t, "outer write", outer(held(soon(t), "a", 1), db, write))
	})
}

// outerFails wants a prompt error, not a wait for the end of ctx.
func outerFails(t *testing.T, db *gorm.DB, o operation) {
	t.Helper()
	start := time.Now()
	wantIs(t, "outer "+o.name, outer(held(soon(t), "a", 1), db, o), guard.ErrInvalid)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("outer %s: the error took %v, want about a second", o.name, took)
	}
	must(t, "a write afterwards", setUnits(db.WithContext(held(soon(t), "a", 1)), "b", 1))
}

// exclusiveHangs is the harm of a register that is locked for writing.
func exclusiveHangs(t *testing.T, w world) {
	t.Helper()
	db := w.unfenced(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	must(t, "register", db.Save(&SimpleFence{Resource: "shop:a"}).Error)
	err := db.Transaction(func(tx *gorm.DB) error {
		must(t, "admit", tx.Model(&SimpleFence{}).Where("resource = ?", "shop:a").Update("token", 1).Error)
		return db.WithContext(ctx).Model(&SimpleFence{}).Where("resource = ?", "shop:a").Update("token", 1).Error
	})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("with an exclusive register: got error %v, want the harm: the hold waits for itself", err)
	}
}

func TestPlugin_OneConnectionFailsPromptly(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		w.put(t, "b", 10)
		db := w.fenced(t)
		raw(t, db).SetMaxOpenConns(1)
		must(t, "the raise needs no second connection", setUnits(db.WithContext(held(soon(t), "a", 1)), "a", 1))
		read, write := other()
		outerFails(t, db, write)
		outerFails(t, db, read)
		outerFails(t, db, operation{"rows", func(db *gorm.DB) error {
			var n int
			return db.Raw("SELECT count(*) FROM items").Row().Scan(&n)
		}})
	}, "SQLite", "PostgresReadCommitted")
}

func TestPlugin_SQLiteHoldRunsTransactionsOneAtATime(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t)
		ctx := held(soon(t), "a", 1)
		var all []<-chan error
		for range 8 {
			all = append(all, later(func() error {
				return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					n, err := units(tx, "a")
					if err != nil {
						return err
					}
					return setUnits(tx, "a", n-1)
				})
			}))
		}
		for _, done := range all {
			must(t, "a goroutine of the hold", <-done)
		}
		if left := w.units(t, "a"); left != 2 {
			t.Errorf("got %d left, want 2", left)
		}
	}, "SQLite")
}

func TestPlugin_SQLiteTransactionIsImmediate(t *testing.T) {
	for _, more := range []string{"", "&_txlock=deferred", "&_txlock=immediate"} {
		onEach(t, func(t *testing.T, w world) {
			w.addr += more
			ctx := soon(t)
			// the harm: both read, and the second to write fails although it would have waited
			if more != "&_txlock=immediate" {
				one, two := w.unfenced(t).Begin(), w.unfenced(t).Begin()
				_, err := units(one, "a")
				must(t, "read", err)
				_, err = units(two, "a")
				must(t, "read", err)
				must(t, "write", setUnits(one, "a", 9))
				must(t, "commit", one.Commit().Error)
				if err := setUnits(two, "a", 9); err == nil {
					t.Fatal("deferred transaction: got no error, want the harm: SQLITE_BUSY at once")
				}
				two.Rollback()
			}

			tx := w.fenced(t).WithContext(held(ctx, "a", 1)).Begin()
			must(t, "begin", tx.Error)
			done := later(func() error { return setUnits(w.unfenced(t), "b", 1) })
			waits(t, "another writer", done)
			must(t, "commit", tx.Commit().Error)
			must(t, "another writer", <-done)
		}, "SQLite")
	}
}

// Without WAL a COMMIT fails while others read, and the connection would go back
// into the pool inside its transaction.
func TestPlugin_SQLiteFailedCommitLeavesNoTransaction(t *testing.T) {
	w := world{databases()[0], "file:" + servertest.SQLiteFile(t) + "?_pragma=busy_timeout(50)"}
	w.prepare(t)
	db := w.fenced(t)
	raw(t, db).SetMaxOpenConns(1)
	tx := db.WithContext(held(soon(t), "a", 1)).Begin()
	reader := w.unfenced(t).Begin()
	_, err := units(reader, "a")
	must(t, "read", err)
	must(t, "write", setUnits(tx, "a", 1))
	if err := tx.Commit().Error; err == nil {
		t.Fatal("got no error, want a COMMIT that found a reader")
	}
	must(t, "end of the read", reader.Rollback().Error)
	must(t, "write on the same connection", setUnits(db, "a", 3))
	if left := w.units(t, "a"); left != 3 {
		t.Errorf("got %d, want 3: committed by itself", left)
	}
}

func TestPlugin_EndsAForgottenTransactionWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t)
		raw(t, db).SetMaxOpenConns(1)
		ctx, cancel := context.WithCancel(held(soon(t), "a", 1))
		tx := db.WithContext(ctx).Begin()
		must(t, "write", setUnits(tx, "a", 1))
		cancel() // and no Rollback
		must(t, "the next transaction of the pool", setUnits(db.WithContext(held(soon(t), "a", 1)), "a", 5))
		must(t, "the next holder", setUnits(w.fenced(t).WithContext(held(soon(t), "a", 2)), "a", 6))
	})
}

func TestPlugin_ForeignAndAdoptedRegisters(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		ctx := soon(t)
		write := func(g fencing.Grant) error {
			return setUnits(w.fenced(t).WithContext(fencing.NewContext(ctx, g)), "a", 1)
		}
		from := func(origin string, generation uint8, n uint64) fencing.Grant {
			token, err := fencing.NewToken(generation, n)
			must(t, "token", err)
			return fencing.Grant{Resource: "shop:a", Origin: origin, Token: token}
		}
		must(t, "first", write(from("etcd/shop", 0, 5)))
		wantIs(t, "another origin, greater token", write(from("sql/shop", 0, 9)), fencing.ErrForeign)
		must(t, "the old origin still", write(from("etcd/shop", 0, 5)))
		must(t, "another origin, higher generation", write(from("sql/shop", 1, 2)))
		wantIs(t, "the old origin", write(from("etcd/shop", 0, 99)), fencing.ErrForeign)
		wantIs(t, "the old origin at that generation", write(from("etcd/shop", 1, 99)), fencing.ErrForeign)
		wantIs(t, "older", write(from("sql/shop", 1, 1)), fencing.ErrStale)

		must(t, "mark", w.unfenced(t).Exec("UPDATE pawl_fences SET origin = '', token = token + 1").Error)
		wantIs(t, "below a register without origin", write(from("sql/shop", 1, 2)), fencing.ErrStale)
		must(t, "any origin adopts it", write(from("zk/shop", 1, 3)))
		wantIs(t, "another one afterwards", write(from("sql/shop", 1, 4)), fencing.ErrForeign)

		must(t, "loss", w.unfenced(t).Exec("DELETE FROM pawl_fences").Error)
		wantIs(t, "a token that no store makes", write(fencing.Grant{Resource: "shop:a", Token: 1 << 63}), guard.ErrInvalid)
		wantIs(t, "the zero token", write(fencing.Grant{Resource: "shop:a"}), guard.ErrInvalid)
	})
}

func TestPlugin_RaisesARegisterThatWasLost(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t).WithContext(held(soon(t), "a", 3))
		must(t, "write", setUnits(db, "a", 1))
		for name, text := range map[string]string{
			"deleted": "DELETE FROM pawl_fences", "lowered": "UPDATE pawl_fences SET token = 4",
		} {
			must(t, name, w.unfenced(t).Exec(text).Error)
			must(t, "write after the register was "+name, setUnits(db, "a", 1))
			must(t, name, w.unfenced(t).Exec(text).Error)
			var n int
			must(t, "row after the register was "+name, db.Raw("SELECT units FROM items").Row().Scan(&n))
			wantIs(t, "the older holder", setUnits(w.fenced(t).WithContext(held(soon(t), "a", 2)), "a", 1), fencing.ErrStale)
		}
	})
}

func TestPlugin_KeepsResourcesApartByBytes(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		keys := []string{"k", "K", "k ", "k\x00", "ü", "u\u0308", "k\\x00", "'; --"}
		for i, key := range keys {
			must(t, key, setUnits(w.fenced(t).WithContext(held(soon(t), key, uint64(10-i))), "a", 1))
		}
		for i, key := range keys {
			must(t, key, setUnits(w.fenced(t).WithContext(held(soon(t), key, uint64(10-i))), "a", 1))
			wantIs(t, key, setUnits(w.fenced(t).WithContext(held(soon(t), key, uint64(9-i))), "a", 1), fencing.ErrStale)
		}
	})
}
