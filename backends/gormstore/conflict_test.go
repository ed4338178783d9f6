package gormstore_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/servertest"
)

// isolated are sessions of the servers with a default isolation of their own.
func isolated() map[string][]string {
	return map[string][]string{
		"PostgreSQL": {"&default_transaction_isolation=serializable", "&default_transaction_isolation=repeatable%20read"},
		"MariaDB":    {"&tx_isolation=%27SERIALIZABLE%27", "&tx_isolation=%27READ-COMMITTED%27"},
	}
}

// Conflicts with other transactions are the store's to retry.
func TestStore_WorksUnderEveryIsolation(t *testing.T) {
	rounds := servertest.Count(5, 50)
	for _, d := range servers() {
		for _, isolation := range isolated()[d.name] {
			t.Run(d.name+isolation, func(t *testing.T) {
				dsn := d.empty(t)
				d.migrated(t, dsn)
				stores := []*gormstore.Store{d.store(t, dsn+isolation), d.store(t, dsn+isolation)}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var mu sync.Mutex
				var order []fencing.Token
				var wg sync.WaitGroup
				for i := range 8 {
					s := stores[i%2]
					wg.Go(func() {
						for range rounds {
							if !contend(ctx, t, s, func(token fencing.Token) {
								mu.Lock()
								defer mu.Unlock()
								order = append(order, token)
							}) {
								return
							}
						}
					})
				}
				wg.Wait()
				for i := 1; i < len(order); i++ {
					if order[i] <= order[i-1] {
						t.Errorf("token of holder %d: got %d after %d, want more", i, order[i], order[i-1])
					}
				}
				if want := 8 * rounds; len(order) != want && !t.Failed() {
					t.Errorf("holders: got %d, want %d", len(order), want)
				}
			})
		}
	}
}

// contend waits for the key, renews and releases. Only ErrBusy may come.
func contend(ctx context.Context, t *testing.T, s *gormstore.Store, held func(fencing.Token)) bool {
	t.Helper()
	for {
		g, err := s.Acquire(ctx, request("hot"))
		switch {
		case isBusy(err):
			time.Sleep(time.Millisecond)
			continue
		case err != nil:
			t.Errorf("Acquire: got %v, want nil or ErrBusy", err)
			return false
		}
		held(g.Token)
		if _, err := s.Renew(ctx, g); err != nil {
			t.Errorf("Renew: got %v, want nil", err)
		}
		if err := s.Release(ctx, g); err != nil {
			t.Errorf("Release: got %v, want nil", err)
		}
		return true
	}
}

// Eight processes insert one new key at once: one gets it, the others are told
// that it is held. No deadlock reaches them.
func TestStore_FirstInsertsAtOnceHaveOneWinner(t *testing.T) {
	rounds := servertest.Count(12, 400)
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			d.migrated(t, dsn)
			stores := make([]*gormstore.Store, 8)
			for i := range stores {
				stores[i] = d.store(t, dsn)
			}
			for round := range rounds {
				key := "k" + strconv.Itoa(round)
				verdicts := make([]error, len(stores))
				start := make(chan struct{})
				var wg sync.WaitGroup
				for i, s := range stores {
					wg.Go(func() {
						<-start
						_, verdicts[i] = s.Acquire(t.Context(), request(key))
					})
				}
				close(start)
				wg.Wait()
				won := 0
				for _, err := range verdicts {
					if err == nil {
						won++
					} else if !isBusy(err) {
						t.Errorf("Acquire of a new key: got %v, want nil or ErrBusy", err)
					}
				}
				if won != 1 {
					t.Errorf("holders of a new key: got %d, want 1", won)
				}
			}
		})
	}
}

// Somebody's transaction on the row (a person with a SQL prompt) holds a call up
// until the context ends; nothing is granted meanwhile.
func TestStore_WaitsForAForeignRowLockNoLongerThanTheContext(t *testing.T) {
	for _, d := range servers() {
		t.Run(d.name, func(t *testing.T) {
			s, db := d.migrated(t, d.empty(t))
			release(t, s, acquire(t, s, request("k")))
			tx := db.Begin()
			exec(t, tx, "UPDATE pawl_locks SET seq_at = seq_at WHERE lock_key = ?", []byte("k"))
			exec(t, tx, "SELECT 1 FROM pawl_locks WHERE lock_key = ? FOR UPDATE", []byte("k"))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			r := request("k")
			if _, err := s.Acquire(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Acquire behind a row lock: got %v, want the context's error", err)
			}
			if err := tx.Rollback().Error; err != nil {
				t.Fatal(err)
			}
			// The abandoned statement may run on in the server and land; then its owner releases it.
			deadline := time.Now().Add(10 * time.Second)
			for {
				g, err := s.Acquire(t.Context(), request("k"))
				if err == nil {
					release(t, s, g)
					return
				}
				if !isBusy(err) || time.Now().After(deadline) {
					t.Fatalf("Acquire after it: got %v, want nil", err)
				}
				_ = s.Release(t.Context(), driver.Grant{Request: r})
			}
		})
	}
}
