package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/history"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Processes take locks on Redis and work on PostgreSQL while links are cut, held
// and lose replies, processes freeze, and Redis freezes and forgets everything.
// Redis may grant a key twice then; the tokens must grow, and the fenced
// resources must not show it. Their unfenced twins do.
func TestHistory_FencedResourcesAreConsistentUnderRandomFaults(t *testing.T) {
	harm := false
	for n := range servertest.Count(6, 3) {
		if !soak() && n > 0 && harm {
			break // the harm has shown
		}
		c := newChaos(t)
		c.run(t, time.Duration(servertest.Count(6, 60))*time.Second)
		c.report(t, "tokens", history.Tokens(c.grants))
		c.report(t, "fenced", history.Register(0, c.fenced))
		if err := history.Register(0, c.twins); err != nil {
			harm = true
			t.Logf("without the fence: %v", err)
		}
	}
	if !harm {
		t.Error("no harm without a fence: the test shows nothing")
	}
}

// chaos is a few processes, each behind links of its own, and what breaks them.
type chaos struct {
	random  *rand.Rand
	server  *servertest.Server
	redis   *redis.Client
	repairs sync.WaitGroup
	clients []*child
	links   []*servertest.Proxy
	keys    []string
	last    func(t *testing.T) // reads everything for the last time

	grants        []history.Grant
	fenced, twins []history.Access
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed of the faults: %d", seed)
	server, lock := redisPlace().own(t)
	stock := postgresPlace().open(t)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), server: server}
	c.redis = redis.NewClient(&redis.Options{Addr: lock[len("redis://"):]})
	t.Cleanup(func() { _ = c.redis.Close() })
	w := openWarehouse(t, stock)
	for range 2 {
		key := newKey("history")
		c.keys = append(c.keys, key)
		for _, name := range []string{key, unprotected(key)} {
			if err := w.db.Exec("INSERT INTO items (name, stock, token) VALUES (?, 0, 0)", name).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		toLock, throughLock := throughProxy(t, lock)
		toStock, throughStock := throughProxy(t, stock)
		c.links = append(c.links, toLock, toStock)
		c.clients = append(c.clients, spawn(t, setup{Identity: "client", Lock: throughLock, Stock: throughStock, TTL: staleTTL, Wait: time.Second}))
	}
	c.last = func(t *testing.T) { c.readLast(t, lock, stock) }
	return c
}

func (c *chaos) run(t *testing.T, lasts time.Duration) {
	t.Helper()
	var talks []*talk
	for i, client := range c.clients {
		k := client.ask(message{Op: "client", N: int64(i), Keys: c.keys, For: lasts})
		k.expect("ready")
		talks = append(talks, k)
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		c.breakSomething(t)
	}
	c.repairs.Wait()
	for _, k := range talks {
		m := k.expect("done")
		c.grants = append(c.grants, m.Grants...)
		c.add(m.Accesses)
	}
	c.last(t)
	outcomes := map[history.Outcome]int{}
	for _, a := range c.fenced {
		outcomes[a.Outcome]++
	}
	t.Logf("%d grants, %d fenced accesses: %d accepted, %d stale, %d unknown", len(c.grants), len(c.fenced),
		outcomes[history.OK], outcomes[history.Stale], outcomes[history.Unknown])
}

// breakSomething breaks one thing, to be repaired after about a lease.
func (c *chaos) breakSomething(t *testing.T) {
	t.Helper()
	time.Sleep(c.between(20, 250))
	link := c.links[c.random.IntN(len(c.links))]
	client := c.clients[c.random.IntN(len(c.clients))]
	repair := link.Heal
	switch c.random.IntN(12) {
	case 0:
		link.Cut()
	case 1:
		link.Hold()
	case 2:
		link.HoldReplies()
	case 3, 4:
		link.DropNextReply()
		return
	case 5, 6, 7, 8:
		client.stop()
		repair = client.resume
	case 9:
		c.server.Pause()
		repair = c.server.Resume
	case 10, 11:
		if err := c.redis.FlushAll(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		return
	}
	lasts := c.between(100, 900)
	c.repairs.Go(func() {
		time.Sleep(lasts)
		repair()
	})
}

func (c *chaos) between(least, most int) time.Duration {
	return time.Duration(least+c.random.IntN(most-least)) * time.Millisecond
}

func (c *chaos) add(accesses []history.Access) {
	twin := map[string]bool{}
	for _, key := range c.keys {
		twin[unprotected(key)] = true
	}
	for _, a := range accesses {
		if twin[a.Resource] {
			c.twins = append(c.twins, a)
		} else {
			c.fenced = append(c.fenced, a)
		}
	}
}

// readLast is a client of the test itself, which no fault reaches.
func (c *chaos) readLast(t *testing.T, lock, stock string) {
	t.Helper()
	s := &stage{setup: setup{Stock: stock}}
	var err error
	if s.guard, err = newGuard(profile(staleTTL, patience), openStore(t, lock), "test"); err != nil {
		t.Fatal(err)
	}
	w := &worker{stage: s, plain: openDB(t, stock), number: len(c.clients)}
	w.fenced = openFenced(t, stock)
	for _, key := range c.keys {
		err := s.guard.WithLock(t.Context(), key, func(ctx context.Context) error {
			v := &visitor{worker: w, id: 2 * w.number, token: tokenOf(ctx)}
			_, ok := v.read(w.fenced.WithContext(ctx), v.access(key))
			_, okTwin := v.read(w.plain.WithContext(ctx), v.access(unprotected(key)))
			if !ok || !okTwin {
				return errors.New("the last read failed")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.add(w.accesses)
}

// report draws what is wrong with a history.
func (c *chaos) report(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	t.Errorf("%s: %v", what, err)
	if broken, ok := errors.AsType[*history.ViolationError](err); ok {
		page := filepath.Join(t.ArtifactDir(), what+".html")
		if err := broken.Draw(page); err != nil {
			t.Error(err)
		}
		t.Logf("see %s (go test -artifacts keeps it)", page)
	}
}
