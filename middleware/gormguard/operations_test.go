package gormguard_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pawl-go/pawl/fencing"
)

// operation is one way into the database. It works on SKU "a", or makes what is
// new.
type operation struct {
	name string
	run  func(db *gorm.DB) error
}

func reads() []operation {
	return []operation{
		{"First", func(db *gorm.DB) error { return db.First(&Item{}, "sku = ?", "a").Error }},
		{"Find", func(db *gorm.DB) error { return db.Find(&[]Item{}).Error }},
		{"FindMap", func(db *gorm.DB) error { return db.Model(&Item{}).Find(&[]map[string]any{}).Error }},
		{"Count", func(db *gorm.DB) error { var n int64; return db.Model(&Item{}).Count(&n).Error }},
		{"Pluck", func(db *gorm.DB) error { var n []int; return db.Model(&Item{}).Pluck("units", &n).Error }},
		{"Scan", func(db *gorm.DB) error { var i Item; return db.Model(&Item{}).Limit(1).Scan(&i).Error }},
		{"RawScan", func(db *gorm.DB) error { var n int; return db.Raw("SELECT units FROM items").Scan(&n).Error }},
		{"RawFind", func(db *gorm.DB) error { var i []Item; return db.Raw("SELECT * FROM items").Find(&i).Error }},
		{"Row", func(db *gorm.DB) error { var n int; return db.Raw("SELECT count(*) FROM items").Row().Scan(&n) }},
		{"Rows", func(db *gorm.DB) error {
			rows, err := db.Model(&Item{}).Rows()
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		}},
		{"Preload", func(db *gorm.DB) error { return db.Preload("Items").Find(&[]Order{}).Error }},
		{"Join", func(db *gorm.DB) error { return db.Joins("JOIN orders ON true").Find(&[]Item{}).Error }},
		{"FindInBatches", func(db *gorm.DB) error {
			return db.FindInBatches(&[]Item{}, 1, func(*gorm.DB, int) error { return nil }).Error
		}},
		{"FirstOrInit", func(db *gorm.DB) error { return db.Where(&Item{SKU: "none"}).FirstOrInit(&Item{}).Error }},
	}
}

func writes() []operation {
	a := func(db *gorm.DB) *gorm.DB { return db.Model(&Item{}).Where("sku = ?", "a") }
	return []operation{
		{"Update", func(db *gorm.DB) error { return a(db).Update("units", 1).Error }},
		{"Updates", func(db *gorm.DB) error { return a(db).Updates(map[string]any{"units": 2}).Error }},
		{"UpdateColumn", func(db *gorm.DB) error { return a(db).UpdateColumn("units", gorm.Expr("units - 1")).Error }},
		{"Save", func(db *gorm.DB) error { return db.Save(&Item{SKU: "a", Units: 3}).Error }},
		{"Create", func(db *gorm.DB) error { return db.Create(&Item{SKU: "new"}).Error }},
		{"CreateMap", func(db *gorm.DB) error {
			return db.Model(&Item{}).Create(map[string]any{"SKU": "new map", "Units": 1}).Error
		}},
		{"CreateBatch", func(db *gorm.DB) error {
			return db.CreateInBatches([]Item{{SKU: "x"}, {SKU: "y"}, {SKU: "z"}}, 2).Error
		}},
		{"Upsert", func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Item{SKU: "a", Units: 4}).Error
		}},
		{"FirstOrCreate", func(db *gorm.DB) error { return db.FirstOrCreate(&Item{}, Item{SKU: "made"}).Error }},
		{"Exec", func(db *gorm.DB) error { return db.Exec("UPDATE items SET units = 5 WHERE sku = ?", "a").Error }},
		{"Association", func(db *gorm.DB) error { return db.Create(&Order{Items: []Item{{SKU: "of an order"}}}).Error }},
		{"Append", func(db *gorm.DB) error {
			return db.Model(&Order{ID: 77}).Association("Items").Append(&Item{SKU: "appended"})
		}},
		{"Transaction", func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return setUnits(tx, "a", 6) })
		}},
		{"Nested", func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				return tx.Transaction(func(tx *gorm.DB) error { return setUnits(tx, "a", 6) })
			})
		}},
		{"Delete", func(db *gorm.DB) error { return db.Where("sku = ?", "a").Delete(&Item{}).Error }},
	}
}

func operations() []operation { return append(reads(), writes()...) }

// sessions are ways to use one *gorm.DB.
func sessions() map[string]func(db *gorm.DB) *gorm.DB {
	session := func(s gorm.Session) func(db *gorm.DB) *gorm.DB {
		return func(db *gorm.DB) *gorm.DB { return db.Session(&s) }
	}
	return map[string]func(db *gorm.DB) *gorm.DB{
		"Default":     func(db *gorm.DB) *gorm.DB { return db },
		"PrepareStmt": session(gorm.Session{PrepareStmt: true}),
		"SkipDefault": session(gorm.Session{SkipDefaultTransaction: true}),
		"NewDB":       session(gorm.Session{NewDB: true}),
	}
}

func TestPlugin_RefusesAStaleHolderEverywhere(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		ctx := soon(t)
		for name, session := range sessions() {
			db := session(w.fenced(t))
			must(t, "the newer holder", setUnits(w.fenced(t).WithContext(held(ctx, "a", 2)), "a", 9))
			for _, o := range operations() {
				t.Run(name+o.name, func(t *testing.T) {
					wantIs(t, "a stale holder", o.run(db.WithContext(held(ctx, "a", 1))), fencing.ErrStale)
				})
			}
			t.Run(name+"InATransaction", func(t *testing.T) {
				wantIs(t, "begin", db.WithContext(held(ctx, "a", 1)).Begin().Error, fencing.ErrStale)
			})
			var all []Item
			must(t, "read", w.unfenced(t).Find(&all).Error)
			if len(all) != 1 || all[0].Units != 9 {
				t.Errorf("after a stale holder's statements: got %+v, want one item of 9", all)
			}
		}
	})
}

func TestPlugin_LetsTheNewestHolderWork(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		ctx := soon(t)
		setups := sessions()
		setups["PrepareStmtAtOpen"] = func(*gorm.DB) *gorm.DB {
			db := w.unfenced(t, prepareAtOpen{})
			use(t, db)
			return db
		}
		setups["SkipDefaultAtOpen"] = func(*gorm.DB) *gorm.DB {
			db := w.unfenced(t, skipAtOpen{})
			use(t, db)
			return db
		}
		for name, session := range setups {
			db := session(w.fenced(t))
			for _, inTx := range []bool{false, true} {
				reset(t, w)
				h := db.WithContext(held(ctx, "a", 3))
				if inTx {
					name += "InATransaction"
					h = h.Begin()
					must(t, "begin", h.Error)
				}
				for _, o := range operations() {
					t.Run(name+o.name, func(t *testing.T) { must(t, "the newest holder", o.run(h)) })
				}
				if inTx {
					must(t, "commit", h.Commit().Error)
				}
				if _, err := units(w.unfenced(t), "a"); !errors.Is(err, gorm.ErrRecordNotFound) {
					t.Errorf("the last operation deletes: got error %v, want %v", err, gorm.ErrRecordNotFound)
				}
			}
		}
	})
}

type prepareAtOpen struct{}

func (prepareAtOpen) Apply(c *gorm.Config) error     { c.PrepareStmt = true; return nil }
func (prepareAtOpen) AfterInitialize(*gorm.DB) error { return nil }

type skipAtOpen struct{}

func (skipAtOpen) Apply(c *gorm.Config) error     { c.SkipDefaultTransaction = true; return nil }
func (skipAtOpen) AfterInitialize(*gorm.DB) error { return nil }

func reset(t *testing.T, w world) {
	t.Helper()
	db := w.unfenced(t)
	must(t, "reset", db.Where("true").Delete(&Item{}).Error)
	must(t, "reset", db.Where("true").Delete(&Order{}).Error)
	must(t, "reset", db.Create(&Order{ID: 77}).Error)
	w.put(t, "a", 10)
}
