package gormstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

// behindProxy returns a store that reaches its server through the proxy, and
// one that does not.
func behindProxy(t *testing.T, d database) (p *servertest.Proxy, s, other *gormstore.Store) {
	t.Helper()
	dsn := d.empty(t)
	other, _ = d.migrated(t, dsn)
	p, through := servertest.NewSQLProxy(t, dsn)
	return p, d.store(t, through), other
}

// warm makes the driver prepare its statements and keep a connection.
func warm(t *testing.T, s *gormstore.Store) {
	t.Helper()
	g := acquire(t, s, request("warm"))
	if _, err := s.Renew(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	release(t, s, g)
}

// wantUnknown checks that a lost reply is told as such.
func wantUnknown(t *testing.T, p *servertest.Proxy, call string, err error) {
	t.Helper()
	if err == nil || isVerdict(err) {
		t.Errorf("%s whose reply was lost: got %v, want an error that is no verdict", call, err)
	}
	select {
	case <-p.Dropped():
	default:
		t.Fatalf("%s: the reply was not lost", call)
	}
}

func TestStore_LostReplyOfAcquireIsRepairable(t *testing.T) {
	for _, d := range servers() {
		t.Run(d.name, func(t *testing.T) {
			p, s, other := behindProxy(t, d)
			for i := range servertest.Count(4, 20) {
				r := request("k" + strconv.Itoa(i))
				p.DropReplyAfter([]byte(r.Owner)) // in the statement's arguments, not where it is prepared
				_, err := s.Acquire(t.Context(), r)
				wantUnknown(t, p, "Acquire", err)

				seen, err := other.Holder(t.Context(), r.Key)
				if err != nil || seen.Owner != r.Owner {
					t.Fatalf("Holder after it: got %q and %v, want the owner of the Acquire", seen.Owner, err)
				}
				if i%2 == 0 {
					if g := acquire(t, s, r); g.Token != seen.Token {
						t.Errorf("token of the repeated Acquire: got %d, want %d", g.Token, seen.Token)
					}
				}
				release(t, s, driver.Grant{Request: r})
				acquire(t, other, request(r.Key)) // free after one release
			}
		})
	}
}

func TestStore_LostReplyOfRenewIsRepairable(t *testing.T) {
	for _, d := range servers() {
		t.Run(d.name, func(t *testing.T) {
			p, s, other := behindProxy(t, d)
			for i := range servertest.Count(4, 20) {
				g := acquire(t, s, request("k"+strconv.Itoa(i)))
				p.DropReplyAfter([]byte(g.Owner))
				if i%2 == 1 && s.Traits().Name == "mysql" {
					p.DropReplyAfter([]byte("SELECT owner, token")) // of two statements the second
				}
				_, err := s.Renew(t.Context(), g)
				wantUnknown(t, p, "Renew", err)
				again, err := s.Renew(t.Context(), g)
				if err != nil || again.Token != g.Token {
					t.Errorf("Renew repeated: got token %d and %v, want %d and nil", again.Token, err, g.Token)
				}
				if _, err := other.Acquire(t.Context(), request(g.Key)); !isBusy(err) {
					t.Errorf("Acquire by another: got %v, want ErrBusy", err)
				}
			}
		})
	}
}

func TestStore_LostReplyOfReleaseIsRepairable(t *testing.T) {
	for _, d := range servers() {
		t.Run(d.name, func(t *testing.T) {
			p, s, other := behindProxy(t, d)
			for i := range servertest.Count(4, 20) {
				g := acquire(t, s, request("k"+strconv.Itoa(i)))
				p.DropReplyAfter([]byte(g.Owner))
				wantUnknown(t, p, "Release", s.Release(t.Context(), g))
				if i%2 == 0 {
					next := acquire(t, other, request(g.Key))
					defer release(t, other, next)
				}
				for _, again := range []driver.Grant{g, {Request: g.Request}} {
					if err := s.Release(t.Context(), again); err != nil {
						t.Errorf("Release repeated: got %v, want nil, it was released by it", err)
					}
				}
			}
		})
	}
}

// The same on SQLite, where the reply is lost between driver and pool.
func TestStore_LostAnswersOfSQLiteAreRepairable(t *testing.T) {
	d := sqliteDB()
	dsn := d.empty(t)
	d.migrated(t, dsn)
	db, spy := d.watched(t, dsn)
	s := storeOn(t, db)
	lost := errors.New("the answer was lost")

	r := request("k")
	spy.loseReply("INSERT INTO pawl_locks", lost)
	if _, err := s.Acquire(t.Context(), r); !errors.Is(err, lost) {
		t.Fatalf("Acquire: got %v, want the driver's error", err)
	}
	g := acquire(t, s, r)
	spy.loseReply("UPDATE pawl_locks", lost)
	if _, err := s.Renew(t.Context(), g); !errors.Is(err, lost) {
		t.Fatalf("Renew: got %v, want the driver's error", err)
	}
	if _, err := s.Renew(t.Context(), g); err != nil {
		t.Errorf("Renew repeated: got %v, want nil", err)
	}
	spy.loseReply("UPDATE pawl_locks", lost)
	if err := s.Release(t.Context(), g); !errors.Is(err, lost) {
		t.Fatalf("Release: got %v, want the driver's error", err)
	}
	release(t, s, g)
	acquire(t, s, request("k"))
}

// A link that swallows everything: calls end with their context, and what
// arrives later can be released by owner.
func TestStore_HalfOpenLinkEndsWithTheContext(t *testing.T) {
	for _, d := range servers() {
		t.Run(d.name, func(t *testing.T) {
			p, s, other := behindProxy(t, d)
			warm(t, s)
			held := acquire(t, s, request("held"))
			late := request("late")
			p.Hold()
			for call, do := range map[string]func(ctx context.Context) error{
				"Acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, late); return err },
				"Renew":   func(ctx context.Context) error { _, err := s.Renew(ctx, held); return err },
				"Release": func(ctx context.Context) error { return s.Release(ctx, driver.Grant{Request: request("never")}) },
				"Holder":  func(ctx context.Context) error { _, err := s.Holder(ctx, "held"); return err },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				err := do(ctx)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s on a half-open link: got %v, want the context's error", call, err)
				}
			}
			p.Heal()
			if err := other.Release(t.Context(), driver.Grant{Request: late}); err != nil && !isLost(err) {
				t.Errorf("Release by owner of the late Acquire: got %v, want nil or ErrLost", err)
			}
			if _, err := s.Renew(t.Context(), held); err != nil {
				t.Errorf("Renew after it healed: got %v, want nil", err)
			}
		})
	}
}
