package faults_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Two guards of this process on one store, one on another connection, and two
// processes with one each: on one key never two of them are inside.
func TestExclusion_OneAtATimeWhoeverAsks(t *testing.T) {
	sideBySide(t, allPlaces(), func(t *testing.T, p place) {
		url := p.open(t)
		for name, locked := range map[string]bool{"WithoutLock": false, "WithLock": true} {
			r := &room{dir: t.TempDir()}
			visits := everybody(t, url, r, locked)
			if harm := r.crowded || r.count() != visits; harm == locked {
				t.Errorf("%s: %d visits counted %d, two inside at once: %v", name, visits, r.count(), r.crowded)
			}
		}
	})
}

// everybody visits the room from everywhere at once. It returns how many visits
// there were.
func everybody(t *testing.T, url string, r *room, locked bool) int {
	t.Helper()
	each := servertest.Count(15, 300)
	shared := openStore(t, url)
	guards := []*guard.Guard{
		openGuard(t, profile(5*time.Second, patience), shared),
		openGuard(t, profile(4*time.Second, patience), shared),
		openGuard(t, profile(5*time.Second, patience), openStore(t, url)),
	}
	key := newKey("room")
	var talks []*talk
	for _, name := range []string{"a", "b"} {
		c := spawn(t, setup{Identity: name, Lock: url, TTL: 5 * time.Second, Wait: patience})
		talks = append(talks, c.ask(message{Op: "visit", Key: key, Mode: r.dir, N: int64(each), Locked: locked}))
	}
	var all sync.WaitGroup
	for _, g := range guards {
		all.Go(func() {
			if err := r.visitOften(t.Context(), g, key, each, locked); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range talks {
		m := k.expect("visited")
		r.crowded = r.crowded || m.N > 0
		if m.Err != "" {
			t.Error(m.Err)
		}
	}
	return (len(guards) + len(talks)) * each
}

func visit(ctx context.Context, s *stage, l *line, m message) {
	r := &room{dir: m.Mode}
	said := message{Op: "visited"}
	if err := r.visitOften(ctx, s.guard, m.Key, int(m.N), m.Locked); err != nil {
		said.Err = err.Error()
	}
	if r.crowded {
		said.N = 1
	}
	l.say(said)
}

// room is a directory in which only one may be at a time. Those who are in it
// count visits in a file, without any care.
type room struct {
	dir string

	mu      sync.Mutex
	crowded bool // somebody met another inside
}

func (r *room) visitOften(ctx context.Context, g *guard.Guard, key string, times int, locked bool) error {
	for range times {
		visit := func(context.Context) error { return r.visit() }
		if !locked {
			if err := visit(ctx); err != nil {
				return err
			}
			continue
		}
		if err := g.WithLock(ctx, key, visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *room) visit() error {
	mark := filepath.Join(r.dir, "inside")
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		r.mu.Lock()
		r.crowded = true
		r.mu.Unlock()
	case err != nil:
		return err
	default:
		defer os.Remove(mark)
		defer f.Close()
	}
	n := r.count()
	time.Sleep(200 * time.Microsecond) // long enough to be met
	return os.WriteFile(filepath.Join(r.dir, "count"), []byte(strconv.Itoa(n+1)), 0o600)
}

func (r *room) count() int {
	text, err := os.ReadFile(filepath.Join(r.dir, "count"))
	if err != nil {
		return 0 // nobody was here yet
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0 // two wrote at once
	}
	return n
}
