package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// leaseTTL is short, so that nobody has to watch a frozen holder for long.
const leaseTTL = time.Second

// protection is a row of the table.
type protection string

const (
	noLock       protection = "no lock"
	lockOnly     protection = "lock only"
	lockAndFence protection = "lock and fence"
)

func protections() []protection { return []protection{noLock, lockOnly, lockAndFence} }

// label is the name with the letter of the row.
func (p protection) label() string {
	return fmt.Sprintf("(%c) %s", 'a'+slices.Index(protections(), p), p)
}

// profile is guard.Stock with what differs in this program.
func profile() guard.Profile {
	p := guard.Stock()
	p.Ledger = nil // a ledger would make a repeated request buy once; here nobody repeats one
	p.TTL = leaseTTL
	p.Wait = time.Minute
	p.Handovers = 8 // so that the processes take turns often
	// Redis can grant a lock twice after a failover, so stock is not sold under its
	// lock alone. The fence makes it exact all the same.
	p.Lock = append(p.Lock, driver.Async)
	return p
}

func newGuard(locks driver.Backend, identity string) (*guard.Guard, error) {
	return guard.New(profile(), guard.On(locks),
		guard.WithNamespace("flashsale"),
		guard.WithIdentity(identity),
		guard.WithLogger(slog.New(slog.DiscardHandler))) // the lost lease is the point of the show
}

// fence is the one line between rows (b) and (c): from now on db refuses what
// comes under a hold that has been overtaken, and every write without a hold.
func fence(db *gorm.DB) error {
	return db.Use(gormguard.Plugin(gormguard.Require(&Item{}, &Order{})))
}

// underLock runs purchase while it holds the sale, and tells how long it waited.
func underLock(ctx context.Context, g *guard.Guard, sale string, purchase func(context.Context) error) (waited time.Duration, err error) {
	asked := time.Now()
	err = g.WithLock(ctx, guard.Key("sale", sale), func(ctx context.Context) error {
		waited = time.Since(asked)
		return purchase(ctx)
	})
	return waited, err
}
