package faults_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

const (
	crowd = 64
	// patientChains is how many hand-over chains another process may have to wait
	// for: it is woken, or polls, and may find the key taken a few times.
	patientChains = 10
)

// Who waits in this process is served in the order of arrival.
func TestFairness_WaitersOfOneProcessAreServedInOrder(t *testing.T) {
	for _, p := range []place{redisPlace(), postgresPlace()} {
		t.Run(p.name, func(t *testing.T) {
			g := openGuard(t, profile(5*time.Second, patience), openStore(t, p.open(t)))
			for range servertest.Count(1, 10) {
				inOrder(t, g)
			}
		})
	}
}

func inOrder(t *testing.T, g *guard.Guard) {
	t.Helper()
	key := newKey("line")
	_, l, err := g.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var served []int
	var all sync.WaitGroup
	for i := range crowd {
		ctx := &watchedContext{Context: t.Context(), waits: make(chan struct{})}
		all.Go(func() {
			if err := g.WithLock(ctx, key, func(context.Context) error { served = append(served, i); return nil }); err != nil {
				t.Error(err)
			}
		})
		<-ctx.waits
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if !slices.IsSorted(served) || len(served) != crowd {
		t.Errorf("got %v, want arrival order", served)
	}
}

// watchedContext tells when somebody begins to wait for its end: a caller that
// stands in line.
type watchedContext struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (c *watchedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// A crowd of goroutines that want one key all the time: each has its share, and
// another process that wants the key too has its turns.
func TestFairness_ACrowdSharesAndLetsAnotherProcessIn(t *testing.T) {
	for _, p := range []place{redisPlace(), postgresPlace()} {
		for _, work := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%s/%v", p.name, work), func(t *testing.T) {
				url := p.open(t)
				c := &crush{key: newKey("crush"), guard: openGuard(t, profile(5*time.Second, 5*time.Second), openStore(t, url)), work: work}
				other := spawn(t, setup{Identity: "other", Lock: url, TTL: 5 * time.Second, Wait: patience})
				c.run(t, other, time.Duration(servertest.Count(2, 20))*time.Second)
			})
		}
	}
}

type crush struct {
	guard *guard.Guard
	key   string
	work  time.Duration
	holds [crowd]atomic.Int64
}

func (c *crush) run(t *testing.T, other *child, lasts time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range c.holds {
		all.Go(func() {
			for ctx.Err() == nil {
				err := c.guard.WithLock(t.Context(), c.key, func(context.Context) error {
					time.Sleep(c.work)
					c.holds[i].Add(1)
					return nil
				})
				if err != nil {
					t.Errorf("goroutine %d: %v", i, err)
					return
				}
			}
		})
	}
	between := c.turns(other, time.Now().Add(lasts))
	cancel()
	all.Wait()
	least, most, total := c.shares()
	t.Logf("%d holds, %d to %d a goroutine; %d turns of the other process, at most %d holds before one", total, least, most, len(between), slices.Max(between))
	if most-least > max(most/10, 1) {
		t.Errorf("got from %d to %d holds a goroutine, want within 10 %%", least, most)
	}
	if got := slices.Max(between); got > patientChains*(crowd+1) {
		t.Errorf("the other process waited for %d holds in between, want at most %d chains of %d", got, patientChains, crowd+1)
	}
}

// turns lets the other process in as often as it gets the key, and counts the
// holds of the crowd before each time.
func (c *crush) turns(other *child, end time.Time) (between []int64) {
	k := other.ask(message{Op: "line up", Key: c.key})
	before := int64(0)
	for {
		k.expect("inside") // nobody else is
		_, _, total := c.shares()
		between = append(between, total-before)
		before = total
		if time.Now().After(end) {
			k.tell("stop")
			return between
		}
		k.tell("on")
	}
}

func (c *crush) shares() (least, most, total int64) {
	all := make([]int64, crowd)
	for i := range c.holds {
		all[i] = c.holds[i].Load()
		total += all[i]
	}
	return slices.Min(all), slices.Max(all), total
}

// lineUp takes the key in a child again and again, and is inside until it is told
// to go on.
func lineUp(ctx context.Context, s *stage, l *line, m message) {
	for told := ""; told != "stop" && ctx.Err() == nil; {
		err := s.guard.WithLock(ctx, m.Key, func(context.Context) error {
			l.say(message{Op: "inside"})
			told = l.await(ctx).Op
			return nil
		})
		if err != nil {
			l.say(message{Op: "failed", Err: err.Error()})
			return
		}
	}
}
