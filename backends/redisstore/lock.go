package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/lease"
)

const (
	keep   = 7 * 24 * time.Hour    // an order outlives the last use of its lock by this
	minTTL = 10 * time.Millisecond // a shorter lease would be over before its grant has arrived
)

var (
	errReply = errors.New("the reply is not one of this script")
	errTTL   = fmt.Errorf("a lease has at least %v", minTTL)
)

// Acquire implements [driver.Locker]. Repeated by the live owner it renews the
// lease, so that Until is true. Leases are whole milliseconds, rounded down.
func (s *Store) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	g, _, err := s.try(ctx, r)
	return g, err
}

// try is Acquire that also says, with ErrBusy, how long the key is held still.
func (s *Store) try(ctx context.Context, r driver.Request) (driver.Grant, time.Duration, error) {
	if _, err := fencing.NewToken(r.Generation, 1); err != nil {
		return driver.Grant{}, 0, fmt.Errorf("redisstore: acquire: %w", err)
	}
	if r.TTL < minTTL {
		return driver.Grant{}, 0, fmt.Errorf("redisstore: acquire: %w", errTTL)
	}
	r.TTL = r.TTL.Truncate(time.Millisecond)
	n := namesOf(r.Key)
	rep, err := s.acquire.Do(ctx, call{
		keys: []string{n.lock, n.order},
		args: []any{r.Owner, r.TTL.Milliseconds(), r.Generation, (keep + r.TTL).Milliseconds()},
	})
	if err != nil {
		return driver.Grant{}, 0, fmt.Errorf("redisstore: acquire: %w", err)
	}
	got, err := rep.cmd.Int64Slice()
	switch {
	case err != nil:
		return driver.Grant{}, 0, fmt.Errorf("redisstore: acquire: %w", err)
	case len(got) == 3 && got[0] == 1:
		g, err := granted(r, got[1], got[2], rep.sent)
		return g, 0, err
	case len(got) == 2 && got[0] == 0:
		return driver.Grant{}, time.Duration(got[1]) * time.Millisecond, driver.ErrBusy
	}
	return driver.Grant{}, 0, fmt.Errorf("redisstore: acquire: %w", errReply)
}

// granted is the grant of r, with the generation it was first made with.
func granted(r driver.Request, sequence, generation int64, sent time.Time) (driver.Grant, error) {
	r.Generation = uint8(generation) //nolint:gosec // out of range is refused by NewToken, or was never stored
	token, err := fencing.NewToken(r.Generation, uint64(sequence))
	if err != nil {
		return driver.Grant{}, fmt.Errorf("redisstore: acquire: %w", err)
	}
	handle := strconv.FormatInt(sequence, 10)
	return driver.Grant{Request: r, Token: token, Until: lease.Until(sent, r.TTL), Handle: handle}, nil
}

// value is what the lock of g holds in Redis. The handle is g's sequence; false
// if this store never made such a grant.
func value(g driver.Grant) (string, bool) {
	sequence, err := strconv.ParseUint(g.Handle, 10, 64)
	if err != nil {
		return "", false
	}
	if token, err := fencing.NewToken(g.Generation, sequence); err != nil || token != g.Token {
		return "", false
	}
	return fmt.Sprintf("%d %d %s", g.Generation, sequence, g.Owner), true
}

// Renew implements [driver.Locker].
func (s *Store) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	held, ok := value(g)
	if !ok {
		return driver.Grant{}, driver.ErrLost
	}
	if g.TTL < minTTL {
		return driver.Grant{}, fmt.Errorf("redisstore: renew: %w", errTTL)
	}
	g.TTL = g.TTL.Truncate(time.Millisecond)
	n := namesOf(g.Key)
	rep, err := s.renew.Do(ctx, call{
		keys: []string{n.lock, n.order},
		args: []any{held, g.TTL.Milliseconds(), (keep + g.TTL).Milliseconds()},
	})
	if err == nil {
		err = verdict(rep)
	}
	if err != nil {
		return driver.Grant{}, fmt.Errorf("redisstore: renew: %w", err)
	}
	g.Until = lease.Until(rep.sent, g.TTL)
	return g, nil
}

// Release implements [driver.Locker]. It wakes those who wait for the key.
func (s *Store) Release(ctx context.Context, g driver.Grant) error {
	held := ""
	if g.Token != 0 {
		var ok bool
		if held, ok = value(g); !ok {
			return driver.ErrLost
		}
	}
	n := namesOf(g.Key)
	rep, err := s.release.Do(ctx, call{
		keys: []string{n.lock, n.order},
		args: []any{g.Owner, held, keep.Milliseconds(), n.freed},
	})
	if err == nil {
		err = verdict(rep)
	}
	if err != nil {
		return fmt.Errorf("redisstore: release: %w", err)
	}
	return nil
}

// verdict reads the reply of a script that answers 1 or, for a lost hold, 0.
func verdict(rep reply) error {
	switch done, err := rep.cmd.Int64(); {
	case err != nil:
		return err
	case done == 1:
		return nil
	case done == 0:
		return driver.ErrLost
	}
	return errReply
}
