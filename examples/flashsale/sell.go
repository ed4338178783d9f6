package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// thinkTime is how long a purchase takes between its read and its write.
const thinkTime = 3 * time.Millisecond

var (
	errSoldOut    = errors.New("sold out")
	errNotWritten = errors.New("the purchase ended before it wrote") // so it may be repeated
)

// sell is the code of the shop: read, think, write. It is the same in all rows,
// and right only where nobody else runs it at the same time. think is called
// between the read and the write.
func sell(ctx context.Context, db *gorm.DB, sale string, buyer int, think func(left int)) (unit int, err error) {
	var item Item
	if err := db.WithContext(ctx).Take(&item, "sale = ?", sale).Error; err != nil {
		return 0, fmt.Errorf("%w: %w", errNotWritten, err)
	}
	if item.Units == 0 {
		return 0, errSoldOut
	}
	think(item.Units)

	// When the lease is lost, ctx ends; a program stops there if it still can. A
	// statement that is on its way cannot be called back, and this is one.
	ctx = context.WithoutCancel(ctx)
	err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		err := tx.Model(&Item{}).Where("sale = ?", sale).
			Updates(map[string]any{"units": item.Units - 1, "till": item.Till + price}).Error
		if err != nil {
			return err
		}
		return tx.Create(&Order{Sale: sale, Unit: item.Units, Buyer: buyer, Cents: price}).Error
	})
	if err != nil {
		return 0, fmt.Errorf("write of unit %d for buyer %d: %w", item.Units, buyer, err)
	}
	return item.Units, nil
}
