package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

// outageTTL is long enough for a margin (55 ms) that a busy machine's timers keep.
const outageTTL = time.Second

// A holder that its store does not reach is told before the store lets another
// process in. A deadline that counts from the last reply is not: there the work
// of two processes overlaps.
func TestOutage_HolderIsToldBeforeAnotherIsGranted(t *testing.T) {
	breaks := []func(*servertest.Proxy){
		(*servertest.Proxy).Hold, (*servertest.Proxy).HoldReplies, (*servertest.Proxy).Cut,
	}
	sideBySide(t, networked(), func(t *testing.T, p place) {
		url := p.open(t)
		var naiveLate int64
		for range servertest.Count(1, 5) {
			var o outage
			other := openStore(t, url)
			for _, fault := range breaks {
				for range 4 {
					proxy, through := throughProxy(t, url)
					o.add(t, through, other, func() { fault(proxy) })
					proxy.Delay(40 * time.Millisecond) // a network: replies are late when all is well
					t.Cleanup(proxy.Heal)
				}
			}
			o.run(t)
			naiveLate += o.naiveLate.Load()
		}
		if naiveLate == 0 {
			t.Error("no harm from a deadline that counts from the reply: the test shows nothing")
		}
	})
}

// The same for a server that is frozen or killed and comes back when it likes.
// Its grants survive.
func TestOutage_HolderIsToldBeforeAServerThatComesBackGrantsAgain(t *testing.T) {
	sideBySide(t, networked(), func(t *testing.T, p place) {
		server, url := p.own(t)
		faults := map[string]func(){
			"Paused": func() {
				server.Pause()
				time.Sleep(outageTTL/2 + rand.N(outageTTL))
				server.Resume()
			},
			"Killed": func() {
				server.Kill()
				time.Sleep(rand.N(outageTTL / 2))
				server.Restart(t)
			},
		}
		for name, fault := range faults {
			t.Run(name, func(t *testing.T) {
				for range servertest.Count(1, 4) {
					atOnce(t, url, fault)
				}
			})
		}
	})
}

// atOnce makes five tries that one fault meets at different times of their
// leases.
func atOnce(t *testing.T, url string, fault func()) {
	t.Helper()
	const tries = 5
	var o outage
	var ready sync.WaitGroup
	ready.Add(tries)
	once := sync.OnceFunc(func() { ready.Wait(); fault() })
	other := openStore(t, url)
	for range tries {
		o.add(t, url, other, func() { ready.Done(); once() })
	}
	o.run(t)
}

// outage counts what came of tries.
type outage struct {
	tries                  []*outageTry
	lost, early, naiveLate atomic.Int64
}

type outageTry struct {
	*outage
	key     string
	guard   *guard.Guard
	rival   driver.Locker
	fault   func()
	letGo   atomic.Bool  // the holder gives the key back itself
	receipt atomic.Int64 // when the last reply came that granted or renewed, in unix nanoseconds
}

// add prepares a try: a holder that reaches the store by an address of its own,
// and its rival.
func (o *outage) add(t *testing.T, url string, other driver.Locker, fault func()) {
	t.Helper()
	try := &outageTry{outage: o, key: newKey("outage"), fault: fault, rival: other}
	s := spied(openStore(t, url), nil, func(call string, _ driver.Grant, err error) {
		if err == nil && (call == "Acquire" || call == "Renew") {
			try.receipt.Store(time.Now().UnixNano())
		}
	})
	try.guard = openGuard(t, profile(outageTTL, 0), s)
	if err := try.guard.WithLock(t.Context(), try.key, nothing); err != nil { // connects
		t.Fatal(err)
	}
	o.tries = append(o.tries, try)
}

func (o *outage) run(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for _, try := range o.tries {
		all.Go(func() { try.run(t) })
	}
	all.Wait()
	t.Logf("%d tries: %d lost, %d told late, %d late by a deadline from the reply",
		len(o.tries), o.lost.Load(), o.early.Load(), o.naiveLate.Load())
	if got := o.early.Load(); got != 0 {
		t.Errorf("in %d of %d tries another was granted before the holder was told", got, len(o.tries))
	}
}

// run holds the key until the lease is lost, or until it has survived the fault.
func (try *outageTry) run(t *testing.T) {
	held, l, err := try.guard.Lock(t.Context(), try.key)
	if err != nil {
		t.Errorf("Lock: %v", err)
		try.fault() // others may wait for it
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		try.compete(ctx, t, held)
	}()
	time.Sleep(rand.N(outageTTL)) // another part of the lease each time
	try.fault()
	select {
	case <-held.Done():
		try.lost.Add(1)
		if err := context.Cause(held); !errors.Is(err, guard.ErrLost) {
			t.Errorf("got cause %v, want ErrLost", err)
		}
	case <-time.After(3 * outageTTL): // it was renewed in time
		try.letGo.Store(true)
	}
	_ = l.Unlock(ctx) // on a broken link its outcome is another test's matter
	<-granted
}

// compete waits for the key and looks, in the moment in which it is granted,
// whether the holder has been told.
func (try *outageTry) compete(ctx context.Context, t *testing.T, held context.Context) {
	g, err := rival(ctx, try.rival, try.key, outageTTL)
	now := time.Now()
	told := held.Err() != nil || try.letGo.Load()
	if err != nil {
		t.Errorf("the rival was never granted: %v", err)
		return
	}
	if !told {
		try.early.Add(1)
	}
	naive := time.Unix(0, try.receipt.Load()).Add(outageTTL)
	if now.Before(naive) && !try.letGo.Load() {
		try.naiveLate.Add(1)
	}
	_ = try.rival.Release(ctx, g)
}
