package gormguard_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

func TestRequire_RefusesWritesOutsideAHold(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		must(t, "without the plugin: the harm", setUnits(w.unfenced(t), "a", 10))
		ctx := soon(t)
		for name, session := range sessions() {
			db := session(w.fenced(t, gormguard.Require(&Item{})))
			for _, o := range writes() {
				t.Run(name+o.name, func(t *testing.T) {
					wantIs(t, "outside a hold", o.run(db.WithContext(ctx)), gormguard.ErrUnfenced)
				})
			}
			for _, o := range reads() {
				t.Run(name+o.name, func(t *testing.T) { must(t, "a read", o.run(db.WithContext(ctx))) })
			}
			tx := db.Begin()
			must(t, "begin", tx.Error)
			wantIs(t, "in a transaction", setUnits(tx, "a", 1), gormguard.ErrUnfenced)
			tx.Rollback()
		}
		if left := w.units(t, "a"); left != 10 {
			t.Errorf("got %d left, want 10", left)
		}
	})
}

func TestRequire_RefusesRawWritesAndLockingReads(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		db := w.fenced(t, gormguard.Require(&Item{}))
		returning := func(text string) operation {
			return operation{text, func(db *gorm.DB) error { var s []string; return db.Raw(text).Scan(&s).Error }}
		}
		refused := []operation{
			{"Row", func(db *gorm.DB) error {
				var s string
				return db.Raw("DELETE FROM items WHERE sku = 'a' RETURNING sku").Row().Scan(&s)
			}},
			returning("DELETE FROM items WHERE sku = 'a' RETURNING sku"),
			{"Replace", func(db *gorm.DB) error { return db.Exec("REPLACE INTO items (sku) VALUES ('a')").Error }},
			{"Alias", func(db *gorm.DB) error {
				return db.Table("items AS i").Where("i.sku = ?", "a").Update("units", 1).Error
			}},
		}
		if w.name != "SQLite" { // GORM leaves FOR UPDATE out there
			refused = append(refused, returning("SELECT sku FROM items FOR UPDATE"),
				operation{"Locking", func(db *gorm.DB) error {
					return db.Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]Item{}).Error
				}})
		}
		for _, o := range refused {
			wantIs(t, o.name, o.run(db), gormguard.ErrUnfenced)
		}
		must(t, "another table", db.Create(&Order{Note: "items"}).Error)
		must(t, "another table, by text", db.Exec("UPDATE orders SET note = 'UPDATE items'").Error)
		must(t, "a migration", db.AutoMigrate(&Item{}))
	})
}

func TestRequire_LetsHoldsPass(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		ctx := soon(t)
		db := w.fenced(t, gormguard.Require(&Item{}))
		must(t, "under a hold", setUnits(db.WithContext(held(ctx, "a", 1)), "a", 1))
		tx := db.WithContext(held(ctx, "a", 1)).Begin()
		must(t, "without ctx, in a transaction that began with one", setUnits(tx.WithContext(ctx), "a", 2))
		must(t, "commit", tx.Commit().Error)

		tx = db.WithContext(ctx).Begin()
		must(t, "savepoint", tx.SavePoint("sp1").Error)
		must(t, "lock row", gormguard.LockRow(tx, "a"))
		must(t, "under a locked row", setUnits(tx, "a", 3))
		must(t, "rollback to savepoint", tx.RollbackTo("sp1").Error)
		wantIs(t, "after the lock went with the savepoint", setUnits(tx, "a", 4), gormguard.ErrUnfenced)
		tx.Rollback()
	})
}

func TestRequire_RefusesWhatIsNoModel(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		if err := w.unfenced(t).Use(gormguard.Plugin(gormguard.Require(7))); err == nil {
			t.Error("Require(7): got no error, want one")
		}
		tx := w.unfenced(t).Begin()
		defer tx.Rollback()
		if err := tx.Use(gormguard.Plugin()); err == nil {
			t.Error("a transaction: got no error, want one")
		}
	}, "SQLite")
}

func TestPlugin_RefusesRowsThatWrite(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		text := "DELETE FROM items WHERE sku = 'a' RETURNING sku"
		db := w.fenced(t).WithContext(held(soon(t), "a", 1))
		var s string
		wantIs(t, "Scan", db.Raw(text).Scan(&s).Error, guard.ErrInvalid)
		wantIs(t, "Row", db.Raw(text).Row().Scan(&s), guard.ErrInvalid)
		_, err := db.Raw(text).Rows() //nolint:rowserrcheck,sqlclosecheck // refused
		wantIs(t, "Rows", err, guard.ErrInvalid)
		must(t, "in a transaction", db.Transaction(func(tx *gorm.DB) error { return tx.Raw(text).Scan(&s).Error }))
		if s != "a" {
			t.Errorf("got %q, want the deleted row", s)
		}
	})
}

// A fenced transaction must not end unseen: what the session does next would
// commit by itself.
func TestPlugin_RefusesToEndAFencedTransactionBySQL(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		ctx := held(soon(t), "a", 1)
		texts := []string{"COMMIT", "ROLLBACK", "BEGIN"}
		if w.name == "MariaDB" {
			texts = append(texts, "CREATE TABLE more (n int)", "TRUNCATE orders")
			tx := w.unfenced(t).Begin()
			must(t, "write", setUnits(tx, "a", 1))
			must(t, texts[3], tx.Exec(texts[3]).Error)
			tx.Rollback()
			if left := w.units(t, "a"); left != 1 {
				t.Fatalf("without the fence: got %d, want the harm: 1, committed by CREATE TABLE", left)
			}
		}
		for _, text := range texts {
			tx := w.fenced(t).WithContext(ctx).Begin()
			wantIs(t, text, tx.Exec(text).Error, guard.ErrInvalid)
			must(t, "rollback", tx.Rollback().Error)
		}
		db := w.fenced(t).WithContext(ctx)
		must(t, "DDL outside a transaction", db.Exec("CREATE TABLE other (n int)").Error)
		must(t, "migration under a hold", db.AutoMigrate(&Item{}))
	})
}

// deadlock makes the transaction tx a victim of one, by last.
func deadlock(t *testing.T, w world, tx *gorm.DB, last operation) {
	t.Helper()
	other := w.unfenced(t).Begin()
	for range 100 { // the one that changed less is the victim
		must(t, "weight", other.Create(&Order{}).Error)
	}
	must(t, "lock b", setUnits(other, "b", 1))
	must(t, "lock a row", other.Model(&Order{ID: 2}).Update("note", "locked").Error)
	must(t, "lock a", setUnits(tx, "a", 5))
	done := later(func() error { return setUnits(other, "a", 7) })
	waits(t, "the other transaction", done)
	if err := last.run(tx); err == nil {
		t.Fatalf("%s: got no error, want a deadlock", last.name)
	}
	must(t, "the other transaction", <-done)
	must(t, "the other transaction", other.Commit().Error)
}

func TestPlugin_RefusesWhatFollowsADeadlock(t *testing.T) {
	for _, last := range []operation{
		{"Write", func(db *gorm.DB) error { return setUnits(db, "b", 5) }},
		{"LockingRead", func(db *gorm.DB) error { // its error comes after the first row, which fills a packet
			return db.Clauses(clause.Locking{Strength: "UPDATE"}).Order("id").Find(&[]Order{}).Error
		}},
	} {
		t.Run(last.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w world) {
				w.put(t, "b", 10)
				must(t, "rows", w.unfenced(t).Create([]Order{{ID: 1, Note: strings.Repeat("x", 1<<20)}, {ID: 2}}).Error)
				tx := w.unfenced(t).Begin()
				deadlock(t, w, tx, last)
				must(t, "write after the deadlock", setUnits(tx, "b", 66))
				tx.Rollback()
				if left := w.units(t, "b"); left != 66 {
					t.Fatalf("without the fence: got %d, want the harm: 66, committed by itself", left)
				}

				tx = w.fenced(t).WithContext(held(soon(t), "a", 1)).Begin()
				deadlock(t, w, tx, last)
				if err := setUnits(tx, "b", 66); err == nil {
					t.Error("write after the deadlock: got no error, want one")
				}
				if err := tx.Commit().Error; err == nil {
					t.Error("COMMIT after the deadlock: got no error, want one")
				}
				if left := w.units(t, "b"); left != 1 {
					t.Errorf("got %d, want 1", left)
				}
			}, "MariaDB")
		})
	}
}

func TestPlugin_KeepsATransactionAfterADuplicateKey(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		tx := w.fenced(t).WithContext(held(soon(t), "a", 1)).Begin()
		if err := tx.Create(&Item{SKU: "a"}).Error; err == nil {
			t.Fatal("got no error, want a duplicate key")
		}
		must(t, "write", setUnits(tx, "a", 4))
		must(t, "commit", tx.Commit().Error)
		if left := w.units(t, "a"); left != 4 {
			t.Errorf("got %d, want 4", left)
		}
	}, "SQLite", "MariaDB")
}
