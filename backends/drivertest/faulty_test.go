package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
	"github.com/pawl-go/pawl/backends/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNet = errors.New("connection reset")

// first applies fault to the first call of a name.
func first(name string, fault drivertest.Fault) func(string, int) drivertest.Fault {
	return func(call string, n int) drivertest.Fault {
		if call == name && n == 1 {
			return fault
		}
		return drivertest.Fault{}
	}
}

func none(string, int) drivertest.Fault { return drivertest.Fault{} }

func faulty(plan func(string, int) drivertest.Fault) driver.Locker {
	return drivertest.Faulty(memstore.New(), plan).(driver.Locker)
}

func request(owner string) driver.Request {
	return driver.Request{Key: "test:k", Owner: owner, TTL: time.Second}
}

type viewing interface {
	Holder(ctx context.Context, key string) (driver.Grant, error)
}

// capabilities names what b can do.
func capabilities(b driver.Backend) string {
	var s []string
	if _, ok := b.(driver.Locker); ok {
		s = append(s, "Locker")
	}
	if _, ok := b.(driver.Waiter); ok {
		s = append(s, "Waiter")
	}
	if _, ok := b.(driver.Viewer); ok {
		s = append(s, "Viewer")
	}
	if _, ok := b.(driver.Checker); ok {
		s = append(s, "Checker")
	}
	return strings.Join(s, " ")
}

func TestFaulty_KeepsCapabilities(t *testing.T) {
	s := newKV("")
	backends := []driver.Backend{
		struct{ driver.Backend }{s},
		struct {
			driver.Backend
			driver.Checker
		}{s, s},
		struct{ driver.Locker }{s},
		struct{ driver.Waiter }{s},
		struct{ driver.Viewer }{s},
		struct {
			driver.Waiter
			viewing
		}{s, s},
		struct {
			driver.Locker
			driver.Checker
		}{s, s},
		struct {
			driver.Waiter
			driver.Checker
		}{s, s},
		struct {
			driver.Viewer
			driver.Checker
		}{s, s},
		s,
	}
	for _, b := range backends {
		want := capabilities(b)
		t.Run(want, func(t *testing.T) {
			wrapped := drivertest.Faulty(b, none)
			if got := capabilities(wrapped); got != want {
				t.Errorf("capabilities: got %q, want %q", got, want)
			}
			if got := wrapped.Traits(); got != b.Traits() {
				t.Errorf("traits: got %+v, want %+v", got, b.Traits())
			}
			if other := drivertest.Faulty(b, none); wrapped == other { // panics if a store is not comparable
				t.Error("two wrappers: got equal values, want different ones")
			}
		})
	}
}

func TestFaulty_WithoutFaultsIsTheStore(t *testing.T) {
	drivertest.RunLocker(t, drivertest.Harness[driver.Locker]{
		Open: func(*testing.T) func() driver.Locker {
			s := newKV("")
			return func() driver.Locker { return drivertest.Faulty(s, none).(driver.Locker) }
		},
		TTL:    time.Second,
		Bubble: synctest.Test,
	})
}

func TestFaulty_CountsCallsByName(t *testing.T) {
	var got []string
	s := drivertest.Faulty(newKV(""), func(call string, n int) drivertest.Fault {
		got = append(got, fmt.Sprint(call, n))
		return drivertest.Fault{}
	})
	g, _ := s.(driver.Locker).Acquire(t.Context(), request("a#1"))
	g, _ = s.(driver.Locker).Renew(t.Context(), g)
	g, _ = s.(driver.Locker).Renew(t.Context(), g)
	_, _ = s.(driver.Viewer).Holder(t.Context(), g.Key)
	_ = s.(driver.Locker).Release(t.Context(), g)
	_, _ = s.(driver.Waiter).AcquireWait(t.Context(), request("a#2"))
	_, _ = s.(driver.Checker).Check(t.Context())
	want := []string{"Acquire1", "Renew1", "Renew2", "Holder1", "Release1", "AcquireWait1", "Check1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestFail_MakesNoCall(t *testing.T) {
	s := faulty(first("Acquire", drivertest.Fail(errNet)))
	if _, err := s.Acquire(t.Context(), request("a#1")); !errors.Is(err, errNet) {
		t.Fatalf("Acquire: got %v, want the fault's error", err)
	}
	if _, err := s.Acquire(t.Context(), request("b#1")); err != nil {
		t.Errorf("Acquire by another: got %v, want nil: the first one never arrived", err)
	}
}

func TestLoseReply_MakesTheCall(t *testing.T) {
	s := faulty(first("Acquire", drivertest.LoseReply(errNet)))
	r := request("a#1")
	if g, err := s.Acquire(t.Context(), r); !errors.Is(err, errNet) || g != (driver.Grant{}) {
		t.Fatalf("Acquire: got %+v, %v, want nothing but the fault's error", g, err)
	}
	if _, err := s.Acquire(t.Context(), request("b#1")); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("Acquire by another: got %v, want ErrBusy: the first one arrived", err)
	}
	if err := s.Release(t.Context(), driver.Grant{Request: r}); err != nil {
		t.Errorf("Release by owner: got %v, want nil", err)
	}
}

func TestTwice_ReturnsTheSecondResult(t *testing.T) {
	s := faulty(func(string, int) drivertest.Fault { return drivertest.Twice() })
	g, err := s.Acquire(t.Context(), request("a#1"))
	if err != nil {
		t.Fatalf("Acquire sent twice: got %v, want nil", err)
	}
	if g, err = s.Renew(t.Context(), g); err != nil {
		t.Fatalf("Renew sent twice: got %v, want nil", err)
	}
	if err := s.Release(t.Context(), g); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Release sent twice to memory: got %v, want ErrLost", err)
	}
}

func TestDelay_ArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty(first("Acquire", drivertest.Delay(time.Minute)))
		start := time.Now()
		if _, err := s.Acquire(t.Context(), request("a#1")); err != nil {
			t.Fatalf("Acquire: got %v, want nil", err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("Acquire: got its result after %v, want 1m0s", took)
		}
	})
}

func TestDelay_ArrivesAfterTheCallerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty(first("Acquire", drivertest.Delay(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := request("a#1")
		if _, err := s.Acquire(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: got %v, want the context's error", err)
		}
		if err := s.Release(t.Context(), driver.Grant{Request: r}); !errors.Is(err, driver.ErrLost) {
			t.Fatalf("Release that overtook its Acquire: got %v, want ErrLost", err)
		}
		time.Sleep(time.Minute - time.Second + time.Millisecond)
		if _, err := s.Acquire(t.Context(), request("b#1")); !errors.Is(err, driver.ErrBusy) {
			t.Errorf("Acquire by another: got %v, want ErrBusy: the first one has landed", err)
		}
	})
}

func TestDelay_OfAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty(first("AcquireWait", drivertest.Delay(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.(driver.Waiter).AcquireWait(ctx, request("a#1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("AcquireWait: got %v, want the context's error", err)
		}
		time.Sleep(time.Minute)
		if _, err := s.Acquire(t.Context(), request("b#1")); err != nil {
			t.Errorf("Acquire by another: got %v, want nil: the wait found its context ended", err)
		}
	})
}
