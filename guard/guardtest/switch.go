package guardtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
)

var errDown = errors.New("guardtest: the store is down")

// Switch makes happen what a test cannot wait for. It is safe for concurrent
// use.
type Switch struct {
	t     testing.TB
	store *memstore.Store

	mu   sync.Mutex
	down bool
	held map[string]bool         // keys that somebody else has
	now  map[string]driver.Grant // grants in force, by key
}

// Down makes every call of the store fail until Up: leases end when they cannot
// be renewed, new calls get ErrUnavailable.
func (s *Switch) Down() { s.set(func() { s.down = true }) }

// Up ends Down.
func (s *Switch) Up() { s.set(func() { s.down = false }) }

// Hold gives key to somebody else for the rest of the test, once its present
// holder has released it.
func (s *Switch) Hold(key string) {
	s.t.Helper()
	s.known("Hold", key)
	s.set(func() { s.held[key] = true })
}

// Lose takes key from its holder, as a failover or an operator would. The
// holder learns of it at its next renewal, after a third of the TTL at most.
//
// It is an error of the test if nobody holds key.
func (s *Switch) Lose(key string) {
	s.t.Helper()
	s.known("Lose", key)
	s.mu.Lock()
	g, ok := s.now[key]
	delete(s.now, key)
	s.mu.Unlock()
	if !ok {
		s.t.Errorf("guardtest: Lose(%q): nobody holds it", key)
		return
	}
	_ = s.store.Release(context.Background(), g) // only a hold that has ended by itself is not there
}

// known refuses a key that no guard would take: the test would show nothing.
func (s *Switch) known(method, key string) {
	s.t.Helper()
	if key == "" || !utf8.ValidString(key) {
		s.t.Errorf("guardtest: %s(%q): this is no key", method, key)
	}
}

func (s *Switch) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// refuse is the error of a call on r, nil if it may go on.
func (s *Switch) refuse(fullKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	if s.held[named(fullKey)] {
		return driver.ErrBusy
	}
	return nil
}

func (s *Switch) note(g driver.Grant) {
	s.set(func() { s.now[named(g.Key)] = g })
}

// named is the key as a guard was given it: without the namespace.
func named(fullKey string) string {
	_, key, _ := strings.Cut(fullKey, ":")
	return key
}

func (s *Switch) backend() driver.Backend { return &switched{Switch: s} }

// switched is the store that obeys a Switch.
type switched struct{ *Switch }

func (s *switched) Traits() driver.Traits { return s.store.Traits() }

func (s *switched) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	if err := s.refuse(r.Key); err != nil {
		return driver.Grant{}, err
	}
	g, err := s.store.Acquire(ctx, r)
	if err == nil {
		s.note(g)
	}
	return g, err
}

func (s *switched) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	if err := s.refuse(r.Key); errors.Is(err, driver.ErrBusy) {
		<-ctx.Done()
		return driver.Grant{}, errors.Join(driver.ErrBusy, ctx.Err())
	} else if err != nil {
		return driver.Grant{}, err
	}
	g, err := s.store.AcquireWait(ctx, r)
	if err == nil {
		s.note(g)
	}
	return g, err
}

func (s *switched) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	if err := s.outage(); err != nil {
		return driver.Grant{}, err
	}
	return s.store.Renew(ctx, g)
}

func (s *switched) Release(ctx context.Context, g driver.Grant) error {
	if err := s.outage(); err != nil {
		return err
	}
	s.set(func() {
		if s.now[named(g.Key)].Owner == g.Owner {
			delete(s.now, named(g.Key))
		}
	})
	return s.store.Release(ctx, g)
}

func (s *switched) Holder(ctx context.Context, key string) (driver.Grant, error) {
	if err := s.refuse(key); errors.Is(err, driver.ErrBusy) {
		return driver.Grant{Request: driver.Request{Key: key, Owner: "somebody else#"}}, nil
	} else if err != nil {
		return driver.Grant{}, err
	}
	return s.store.Holder(ctx, key)
}

func (s *Switch) outage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	return nil
}
