package guard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// exampleGuard stands for the guard of a service; yours is On real stores.
func exampleGuard() *guard.Guard {
	p := guard.Stock()
	p.Ledger = nil
	g, err := guard.New(p, guard.On(memstore.New()), guard.SingleProcess(), guard.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	return g
}

func ExampleGuard_WithLock() {
	ctx, stock := context.Background(), exampleGuard()

	err := stock.WithLock(ctx, guard.Key("sku", 42), func(ctx context.Context) error {
		fmt.Println("alone with", guard.Key("sku", 42)) // work under this ctx: it ends when the lock is lost
		return ctx.Err()
	}, guard.Wait(time.Second))

	switch {
	case err == nil: // it happened
		fmt.Println("done")
	case errors.Is(err, guard.ErrBusy): // it did not: somebody else has it
	case errors.Is(err, guard.ErrUnavailable): // it did not: the store gave no answer
	case errors.Is(err, guard.ErrLost): // it may have: the lease ended while fn ran
	default: // fn's own error
	}
	// Output:
	// alone with sku:42
	// done
}

func ExampleGuard_Lock() {
	ctx, docs := context.Background(), exampleGuard()

	_, lease, err := docs.Lock(ctx, guard.Key("doc", "a1")) // one request takes it
	if err != nil {
		fmt.Println(err)
		return
	}
	save := func(request context.Context) error { // later ones work under it
		ctx := lease.Bind(request) // ends with the request, and with the lease
		fmt.Println("held:", docs.Held(ctx, guard.Key("doc", "a1")))
		return ctx.Err()
	}
	fmt.Println("saved:", save(ctx) == nil)
	fmt.Println("freed:", lease.Unlock(ctx) == nil)
	// Output:
	// held: true
	// saved: true
	// freed: true
}

func ExampleGuard_WithLocks() {
	ctx, accounts := context.Background(), exampleGuard()

	transfer := func(from, to string) error {
		keys := []string{guard.Key("account", from), guard.Key("account", to)}
		return accounts.WithLocks(ctx, keys, func(context.Context) error { // sorted: no deadlock with the way back
			fmt.Println("both held")
			return nil
		})
	}
	fmt.Println(transfer("alice", "bob"))
	// Output:
	// both held
	// <nil>
}

// A profile does not start on a store that cannot serve it.
func ExampleNew() {
	p := guard.Stock()
	p.Ledger = nil
	_, err := guard.New(p, guard.On(memstore.New()))
	fmt.Println(err)
	// Output:
	// pawl: New (stock): invalid use: profile "stock" needs a lock of consistency consensus (etcdstore, zkstore) or primary (gormstore); given: memory (local); a local store serves only with SingleProcess
}

// A profile is plain data: copy one and change it.
func ExampleProfile() {
	p := guard.Stock()
	p.Name = "coupon"
	p.Lock = []driver.Consistency{driver.Async, driver.Primary} // the database row refuses the second grant
	p.TTL, p.Wait = 5*time.Second, 0
	fmt.Println(p.Name, p.TTL, p.Wait)
	fmt.Printf("%v\n", p.Lock)
	// Output:
	// coupon 5s 0s
	// [async primary]
}

func ExampleKey() {
	fmt.Println(guard.Key("sku", 42))
	fmt.Println(guard.Key("a:b", "c"))
	fmt.Println(guard.Key("a", "b:c"))
	// Output:
	// sku:42
	// a%3Ab:c
	// a:b%3Ac
}
