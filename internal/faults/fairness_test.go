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
	// turn is how long another process may have to wait for its turn: half of the Wait
	// after which it would give up.
	turn     = turnWait / 2
	turnWait = 5 * time.Second
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
// another process that wants the key too has its turns, on stores that wake it
// and on those that it polls. A crowd of one is left out on the latter: that it
// gives way to nobody is a stated limit.
func TestFairness_ACrowdSharesAndLetsAnotherProcessIn(t *testing.T) {
	for _, p := range []place{redisPlace(), postgresPlace()} {
		for _, tt := range []struct {
			size int
			work time.Duration
		}{{crowd, 0}, {crowd, time.Millisecond}, {1, 5 * time.Millisecond}} {
			if p.name != "Redis" && tt.size == 1 {
				continue
			}
			if tt.size == 1 && p.name != redisPlace().name {
				continue
			}
			t.Run(fmt.Sprintf("%s/%dGoroutines/%v", p.name, tt.size, tt.work), func(t *testing.T) {
				url := p.open(t)
				c := &crush{
					key: newKey("crush"), work: tt.work, holds: make([]atomic.Int64, tt.size),
					guard: openGuard(t, profile(turnWait, turnWait), openStore(t, url)),
				}
				other := spawn(t, setup{Identity: "other", Lock: url, TTL: turnWait, Wait: turnWait})
				c.run(t, other, time.Duration(servertest.Count(2, 30))*time.Second)
			})
		}
	}
}

type crush struct {
	guard *guard.Guard
	key   string
	work  time.Duration
	holds []atomic.Int64
}

func (c *crush) run(t *testing.T, other *child, lasts time.Duration) {
	t.Helper()
	k := other.ask(message{Op: "line up", Key: c.key})
	k.expect("inside") // it is connected, and the crowd finds it there
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range c.holds {
		all.Go(func() {
			if err := c.hold(ctx, &c.holds[i]); err != nil {
				t.Errorf("goroutine %d of the crowd: %v", i, err)
			}
		})
	}
	longest := c.turns(t, k, time.Now().Add(lasts))
	cancel()
	all.Wait()
	least, most, _ := c.shares()
	if most-least > max(most/10, 1) {
		t.Errorf("got from %d to %d holds a goroutine, want within 10 %%", least, most)
	}
	if longest > turn {
		t.Errorf("the other process waited for its turn for %v, want at most %v", longest, turn)
	}
}

// hold takes the key again and again until ctx ends.
func (c *crush) hold(ctx context.Context, count *atomic.Int64) error {
	for ctx.Err() == nil {
		err := c.guard.WithLock(context.WithoutCancel(ctx), c.key, func(context.Context) error {
			time.Sleep(c.work)
			count.Add(1)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// turns lets the other process in as often as it gets the key, with a pause after
// each time, and measures its waits.
func (c *crush) turns(t *testing.T, k *talk, end time.Time) (longest time.Duration) {
	t.Helper()
	turns, holds, most := 0, int64(0), int64(0)
	for ; time.Now().Before(end); turns++ {
		k.tell("on")
		time.Sleep(20 * time.Millisecond)
		asked := time.Now()
		k.tell("again")
		k.expect("inside") // nobody else is
		longest = max(longest, time.Since(asked))
		_, _, total := c.shares()
		most = max(most, total-holds)
		holds = total
	}
	k.tell("stop")
	t.Logf("%d holds, %d turns of the other process, after %v and %d holds at most", holds, turns, longest, most)
	return longest
}

func (c *crush) shares() (least, most, total int64) {
	all := make([]int64, len(c.holds))
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
		if told != "stop" {
			l.await(ctx)
		}
	}
}
