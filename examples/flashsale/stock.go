package main

import (
	"context"
	"errors"

	"gorm.io/gorm"
)

// price of a unit, in cents.
const price = 49_99

// Item is what is for sale: one row a sale.
type Item struct {
	Sale  string `gorm:"primaryKey;size:32"`
	Units int    // left
	Till  int64  // cents taken
}

// TableName implements gorm's Tabler.
func (Item) TableName() string { return "flashsale_items" }

// Order is a unit that was sold. Units are numbered; the one that is sold has
// the number of units left.
type Order struct {
	ID    uint64 `gorm:"primaryKey"`
	Sale  string `gorm:"size:32;index"`
	Unit  int
	Buyer int
	Cents int64
}

// TableName implements gorm's Tabler.
func (Order) TableName() string { return "flashsale_orders" }

// audit is what the database says after a sale.
type audit struct {
	Orders     int   // written
	Different  int   // units among them
	DoubleSold int   // units with more than one order
	Buyers     int   // that have an order
	Left       int   // units, by the item
	Till       int64 // cents, by the item
	Cents      int64 // cents, by the orders
}

func prepare(ctx context.Context, db *gorm.DB, sale string, units int) error {
	return db.WithContext(ctx).Create(&Item{Sale: sale, Units: units}).Error
}

func inspect(ctx context.Context, db *gorm.DB, sale string) (audit, error) {
	db = db.WithContext(ctx)
	var a audit
	err := db.Model(&Order{}).Where("sale = ?", sale).
		Select("COUNT(*) AS orders, COUNT(DISTINCT unit) AS different, COUNT(DISTINCT buyer) AS buyers, COALESCE(SUM(cents), 0) AS cents").
		Take(&a).Error
	if err != nil {
		return a, err
	}
	var twice int64
	units := db.Model(&Order{}).Select("unit").Where("sale = ?", sale).Group("unit").Having("COUNT(*) > 1")
	if err := db.Table("(?) AS u", units).Count(&twice).Error; err != nil {
		return a, err
	}
	a.DoubleSold = int(twice)
	var item Item
	err = db.Take(&item, "sale = ?", sale).Error
	a.Left, a.Till = item.Units, item.Till
	return a, err
}

// clearAway removes the rows of a sale.
func clearAway(ctx context.Context, db *gorm.DB, sale string) error {
	db = db.WithContext(ctx)
	return errors.Join(
		db.Delete(&Order{}, "sale = ?", sale).Error,
		db.Delete(&Item{}, "sale = ?", sale).Error)
}
