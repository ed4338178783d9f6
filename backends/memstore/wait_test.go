package memstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func request(owner string) driver.Request {
	return driver.Request{Key: "test:k", Owner: owner, TTL: time.Minute}
}

func acquire(t *testing.T, s *memstore.Store, r driver.Request) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire: got %v, want nil", err)
	}
	return g
}

func TestStore_AcquireWaitSaysBusyAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		acquire(t, s, request("a#1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := s.AcquireWait(ctx, request("b#1"))
		if !errors.Is(err, driver.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("AcquireWait: got %v, want ErrBusy and the context's error", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("AcquireWait: got an answer after %v, want 1s", took)
		}
	})
}

func TestStore_WaitIsServedTheMomentTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		start := time.Now()
		g := acquire(t, s, request("a#1"))
		time.Sleep(30 * time.Second)
		if _, err := s.Renew(t.Context(), g); err != nil { // moves the end to 1m30s
			t.Fatal(err)
		}
		if _, err := s.AcquireWait(t.Context(), request("b#1")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 90*time.Second {
			t.Errorf("AcquireWait: got the key after %v, want 1m30s", took)
		}
	})
}

// There is one order of arrival for all that wait, however many.
func TestStore_ServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		g := acquire(t, s, request("first#1"))
		const queued = 200
		served := make(chan int, queued)
		for i := range queued {
			go func() {
				g, err := s.AcquireWait(t.Context(), request("q#"+strconv.Itoa(i)))
				if err != nil {
					t.Errorf("AcquireWait: got %v, want nil", err)
				}
				served <- i
				if err := s.Release(t.Context(), g); err != nil {
					t.Errorf("Release: got %v, want nil", err)
				}
			}()
			synctest.Wait()
		}
		if err := s.Release(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for want := range queued {
			if got := <-served; got != want {
				t.Fatalf("served as number %d: got the wait that came as number %d", want, got)
			}
		}
	})
}

func TestStore_RequestThatCannotBeGrantedLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		g := acquire(t, s, request("a#1"))
		failed := make(chan error, 1)
		go func() {
			r := request("b#1")
			r.Generation = 255
			_, err := s.AcquireWait(t.Context(), r)
			failed <- err
		}()
		synctest.Wait()
		served := make(chan error, 1)
		go func() {
			_, err := s.AcquireWait(t.Context(), request("c#1"))
			served <- err
		}()
		synctest.Wait()
		if err := s.Release(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil || errors.Is(err, driver.ErrBusy) {
			t.Errorf("AcquireWait with generation 255: got %v, want its own error", err)
		}
		if err := <-served; err != nil {
			t.Errorf("AcquireWait behind it: got %v, want nil", err)
		}
	})
}
