package guard_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

var errFn = errors.New("fn's own")

func TestGuard_WithLockHoldsWhileFnRuns(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			if free(t, s, "k") {
				t.Error("the key is free while fn runs")
			}
			if !g.Held(ctx, "k") || g.Held(t.Context(), "k") || g.Held(ctx, "other") {
				t.Error("Held does not tell the context of the hold from others")
			}
			grants := fencing.Grants(ctx)
			if len(grants) != 1 || grants[0].Resource != "pawl:k" || grants[0].Token == 0 || grants[0].Origin != store.Traits().Name+"/pawl" {
				t.Errorf("got grants %v, want one of pawl:k", grants)
			}
			return errFn
		})
		if err != errFn { //nolint:errorlint // as it is, not wrapped
			t.Errorf("got %v, want fn's error as it is", err)
		}
		if !free(t, s, "k") {
			t.Error("the key is held after WithLock")
		}
	})
}

func TestGuard_TokensGrow(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		last := fencing.Token(0)
		for range 5 {
			if err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
				tok := fencing.Grants(ctx)[0].Token
				if tok <= last {
					t.Errorf("got token %d after %d", tok, last)
				}
				last = tok
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestGuard_WithLockRenewsALongFn(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		p := lockOnly()
		p.TTL, p.MaxHold = time.Second, 0
		g := newGuard(t, p, store)
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			for range 40 {
				time.Sleep(100 * time.Millisecond)
				if _, err := s.Acquire(ctx, driver.Request{Key: "pawl:k", Owner: "rival#1", TTL: time.Second}); !errors.Is(err, driver.ErrBusy) {
					t.Fatalf("another was granted the key while fn ran: %v", err)
				}
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestGuard_WithLockTellsTheLossBeforeAnotherIsGranted(t *testing.T) {
	for _, name := range []string{"RequestsVanish", "RepliesVanish", "ConnectionRefused", "ClientIgnoresCancel"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				cut := connect(s)
				g := newGuard(t, lockOnly(), cut)
				events := make(chan string, 2)
				done := make(chan struct{})
				go func() {
					defer close(done)
					time.Sleep(time.Second)
					if _, err := s.AcquireWait(t.Context(), driver.Request{Key: "pawl:k", Owner: "rival#1", TTL: time.Second}); err != nil {
						t.Error(err)
					}
					events <- "granted"
				}()
				err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
					cut.breaks(blackout(name))
					<-ctx.Done()
					events <- "told"
					if cause := context.Cause(ctx); !errors.Is(cause, guard.ErrLost) {
						t.Errorf("got cause %v, want ErrLost", cause)
					}
					return nil
				})
				<-done
				wantErr(t, err, guard.ErrLost)
				if first := <-events; first != "told" {
					t.Errorf("the first event is %q, want told", first)
				}
				cut.breaks(nil, nil)
				time.Sleep(time.Minute) // calls that ignore cancel come back
			})
		})
	}
}

// blackout is a way for a store to be gone.
func blackout(name string) (before, after func(context.Context, string, int) error) {
	switch name {
	case "RequestsVanish":
		return func(ctx context.Context, _ string, _ int) error { <-ctx.Done(); return ctx.Err() }, nil
	case "RepliesVanish": // the request is renewed late, when nobody counts on it
		return nil, func(_ context.Context, call string, _ int) error {
			if call == "Renew" {
				return errNet
			}
			return nil
		}
	case "ConnectionRefused":
		return func(context.Context, string, int) error { return errNet }, nil
	default:
		return func(context.Context, string, int) error { time.Sleep(30 * time.Second); return errNet }, nil
	}
}

func TestGuard_WithLockIsLostWhenTheStoreSaysSo(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		began := time.Now()
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			h, err := s.Holder(ctx, "pawl:k")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Release(ctx, driver.Grant{Request: driver.Request{Key: "pawl:k", Owner: h.Owner}}); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			return errFn
		})
		wantErr(t, err, guard.ErrLost)
		if !errors.Is(err, errFn) {
			t.Errorf("got %v, want fn's error joined", err)
		}
		if took := time.Since(began); took > guard.Stock().TTL/3 {
			t.Errorf("the loss was told after %v, want at most TTL/3", took)
		}
	})
}

func TestGuard_WithLockReportsALossThatFnDidNotNotice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		err := g.WithLock(t.Context(), "k", func(context.Context) error {
			w.breaks(func(context.Context, string, int) error { return errNet }, nil)
			time.Sleep(time.Minute / 2)
			return nil
		})
		wantErr(t, err, guard.ErrLost)
	})
}

func TestGuard_WithLockSurvivesARenewalThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		w.breaks(func(_ context.Context, call string, n int) error {
			if call == "Renew" && n%2 == 1 {
				return errNet
			}
			return nil
		}, nil)
		if err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			time.Sleep(45 * time.Second)
			return ctx.Err()
		}); err != nil {
			t.Errorf("got %v, want nil: each second renewal succeeded", err)
		}
	})
}

func TestGuard_MaxHoldEndsAHold(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		p := lockOnly()
		p.MaxHold = 25 * time.Second
		g := newGuard(t, p, store)
		began := time.Now()
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error { <-ctx.Done(); return nil })
		wantErr(t, err, guard.ErrLost)
		if took := time.Since(began); took != p.MaxHold {
			t.Errorf("the hold ended after %v, want MaxHold %v", took, p.MaxHold)
		}
		synctest.Wait()
		if !free(t, s, "k") {
			t.Error("fn has returned and the key is still held")
		}
	})
}

func TestGuard_WithLockUnwinds(t *testing.T) {
	for name, leave := range map[string]func(){
		"Panic":  func() { panic("boom") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
				g := newGuard(t, lockOnly(), store)
				unwound := make(chan any, 1)
				go func() {
					defer func() { unwound <- recover() }()
					_ = g.WithLock(t.Context(), "k", func(context.Context) error { leave(); return nil })
					t.Error("WithLock returned")
				}()
				if got := <-unwound; name == "Panic" && got != "boom" {
					t.Errorf("got panic %v, want boom", got)
				}
				synctest.Wait()
				if !free(t, s, "k") {
					t.Error("the key is held after unwinding")
				}
				if err := g.Close(t.Context()); err != nil {
					t.Errorf("something is still active: %v", err)
				}
			})
		})
	}
}

func TestGuard_CancelOfTheCallerReachesFn(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		ctx, cancel := context.WithCancel(t.Context())
		err := g.WithLock(ctx, "k", func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, guard.ErrLost) {
			t.Errorf("got %v, want fn's context.Canceled and no loss", err)
		}
		synctest.Wait()
		if !free(t, s, "k") {
			t.Error("the key is held: it must be released on a context of its own")
		}
	})
}
