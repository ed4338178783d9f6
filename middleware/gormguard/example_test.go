package gormguard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// Lamp is what the examples sell.
type Lamp struct {
	SKU   string `gorm:"primaryKey"`
	Units int
}

var errNoneLeft = errors.New("none left")

func openStock(ctx context.Context, db *gorm.DB) (*guard.Guard, error) {
	if err := gormstore.Migrate(ctx, db); err != nil { // or gormstore.Schema, for your migration tool
		return nil, err
	}
	locks, err := gormstore.New(db)
	if err != nil {
		return nil, err
	}
	p := guard.Stock()
	p.Ledger = nil // no store of this version keeps an idempotency ledger
	return guard.New(p, guard.On(locks), guard.WithNamespace("shop"))
}

func deductLamps(ctx context.Context, stock *guard.Guard, db *gorm.DB, sku string, n int) error {
	return gormguard.WithLock(ctx, stock, db, guard.Key("sku", sku), func(_ context.Context, tx *gorm.DB) error { // tx carries the context of the hold
		var lamp Lamp
		if err := tx.First(&lamp, "sku = ?", sku).Error; err != nil {
			return err
		}
		if lamp.Units < n {
			return errNoneLeft // rolled back, unlocked
		}
		return tx.Model(&lamp).Update("units", lamp.Units-n).Error
	})
}

func ExampleWithLock() {
	ctx, stock, db, done := openLampShop()
	defer done()
	fmt.Println(deductLamps(ctx, stock, db, "brass", 2))
	fmt.Println(deductLamps(ctx, stock, db, "brass", 2))
	// Output:
	// <nil>
	// none left
}

// The plugin fences every statement whose context carries a hold, and Require
// makes a write without one an error.
func ExamplePlugin() {
	ctx, stock, db, done := openLampShop()
	defer done()

	if err := db.Use(gormguard.Plugin(gormguard.Require(&Lamp{}))); err != nil {
		fmt.Println(err)
		return
	}
	restock := func(ctx context.Context) error {
		return db.WithContext(ctx).Model(&Lamp{}).Where("sku = ?", "brass").Update("units", 10).Error
	}
	fmt.Println("under the lock:", stock.WithLock(ctx, guard.Key("sku", "brass"), restock))
	fmt.Println("without it:", errors.Is(restock(ctx), gormguard.ErrUnfenced))
	// Output:
	// under the lock: <nil>
	// without it: true
}

// openLampShop is a shop with three lamps, in an SQLite file that done removes.
func openLampShop() (ctx context.Context, stock *guard.Guard, db *gorm.DB, done func()) {
	orPanic := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	ctx = context.Background()
	dir, err := os.MkdirTemp("", "pawl-example-")
	orPanic(err)
	db, err = gorm.Open(sqlite.Open("file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)&_txlock=immediate"), &gorm.Config{})
	orPanic(err)
	stock, err = openStock(ctx, db)
	orPanic(err)
	orPanic(db.AutoMigrate(&Lamp{}))
	orPanic(db.Create(&Lamp{SKU: "brass", Units: 3}).Error)
	return ctx, stock, db, func() {
		pool, err := db.DB()
		orPanic(err)
		orPanic(pool.Close())
		orPanic(os.RemoveAll(dir))
	}
}
