package drivertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

// kv is a small store that keeps the contract, unless it has a bug: then it
// breaks one promise. It tests the suite, as memstore cannot.
type kv struct {
	bug string

	mu   sync.Mutex
	rows map[string]*kvRow
}

type kvRow struct {
	driver.Grant
	seq     uint64
	expires time.Time
	count   int
	queue   []*kvWait
}

type kvWait struct {
	driver.Request
	wake  chan struct{}
	grant driver.Grant
	done  bool
}

func newKV(bug string) *kv { return &kv{bug: bug, rows: map[string]*kvRow{}} }

func (s *kv) is(bugs ...string) bool { return slices.Contains(bugs, s.bug) }

func (s *kv) Traits() driver.Traits {
	return driver.Traits{Name: "kv", Consistency: driver.Local, FIFO: true, MinTTL: time.Millisecond}
}

func (s *kv) row(key string) *kvRow {
	switch {
	case s.is("keys are folded"):
		key = strings.ToLower(key)
	case s.is("keys are trimmed"):
		key = strings.TrimRight(key, " ")
	case s.is("keys are cut"):
		key = key[:min(len(key), 512)]
	case s.is("one lock for all keys"):
		key = ""
	}
	row := s.rows[key]
	if row == nil {
		row = &kvRow{}
		s.rows[key] = row
	}
	return row
}

func (s *kv) live(r *kvRow) bool {
	if s.is("expired hold stays") {
		return r.Token != 0
	}
	return r.Token != 0 && time.Now().Before(r.expires)
}

func (s *kv) give(row *kvRow, r driver.Request, sent time.Time) (driver.Grant, error) {
	if row.seq++; s.is("token is constant") || (s.is("order forgotten at expiry") && row.Token != 0) {
		row.seq = 1
	}
	generation := r.Generation
	if s.is("generation is dropped") {
		generation = 0
	}
	token, err := fencing.NewToken(generation, row.seq)
	if err != nil && !s.is("bad generation is granted") {
		return driver.Grant{}, err
	}
	if s.is("token without room for hand-overs") {
		token = fencing.Token(row.seq)
	}
	row.expires, row.count = sent.Add(r.TTL), 1
	row.Grant = driver.Grant{Request: r, Token: token, Until: row.expires}
	if s.is("grant belongs to nobody") {
		row.Owner = ""
	}
	return row.Grant, nil
}

func (s *kv) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	sent := time.Now()
	if err := ctx.Err(); err != nil && !s.is("context is ignored") {
		if s.is("ended context is success") {
			return driver.Grant{Request: r}, nil
		}
		if s.is("ended context is busy") {
			return driver.Grant{}, driver.ErrBusy
		}
		return driver.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(r.Key)
	if s.is("Acquire waits") {
		for s.live(row) && row.Owner != r.Owner {
			s.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			s.mu.Lock()
		}
	}
	g, err := s.acquire(row, r, sent)
	switch {
	case s.is("busy is another error") && err != nil:
		return driver.Grant{}, errors.New("kv: taken")
	case s.is("Until counts from the reply"):
		time.Sleep(r.TTL / 10)
		g.Until = time.Now().Add(r.TTL)
	}
	return g, err
}

func (s *kv) acquire(row *kvRow, r driver.Request, sent time.Time) (driver.Grant, error) {
	if s.live(row) || len(row.queue) > 0 && !s.is("Acquire overtakes waits") {
		if row.Owner != r.Owner || s.is("retry is busy") {
			return driver.Grant{}, driver.ErrBusy
		}
		row.count++
		switch {
		case s.is("retry is a new grant"):
			return s.give(row, r, sent)
		case s.is("retry promises more"):
			g := row.Grant
			g.Until = sent.Add(r.TTL)
			return g, nil
		}
		return row.Grant, nil
	}
	if s.is("check, then act") {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	return s.give(row, r, sent)
}

func (s *kv) Renew(_ context.Context, g driver.Grant) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(g.Key)
	switch {
	case row.Token == 0, !s.live(row) && !s.is("expired hold is renewed"),
		row.Owner != g.Owner && !s.is("Renew without owner"),
		row.Token != g.Token && !s.is("Renew without token"):
		if s.is("refused Renew extends") {
			row.expires = time.Now().Add(g.TTL)
		}
		return driver.Grant{}, driver.ErrLost
	}
	row.Until = time.Now().Add(g.TTL)
	if !s.is("Renew does not extend") {
		row.expires = row.Until
	}
	if s.is("token changes at Renew") {
		row.Token += 512
	}
	if s.is("Until stays at Renew") {
		return g, nil
	}
	return row.Grant, nil
}

func (s *kv) Release(_ context.Context, g driver.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(g.Key)
	switch {
	case s.is("Release of anything is nil") && row.Owner != g.Owner:
		return nil
	case row.Token == 0 || !s.live(row), row.Owner != g.Owner && !s.is("Release by key"),
		row.Token != g.Token && (g.Token != 0 || s.is("Release needs a token")):
		return driver.ErrLost
	case s.is("holds are counted") && row.count > 1:
		row.count--
		return nil
	case s.is("Release waits for expiry"):
		return nil
	}
	if row.Grant = (driver.Grant{}); s.is("order forgotten at Release") {
		row.seq = 0
	}
	if s.is("Acquire overtakes waits") && len(row.queue) > 0 {
		s.wakeHead(row.queue[0].wake) // a place in the queue is only a hint
		return nil
	}
	s.serve(row)
	return nil
}

func (s *kv) Holder(_ context.Context, key string) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(key)
	switch {
	case s.is("Holder is who waits") && len(row.queue) > 0:
		return driver.Grant{Request: row.queue[0].Request, Token: row.Token}, nil
	case s.live(row), s.is("Holder may have expired"):
		return row.Grant, nil
	}
	return driver.Grant{}, nil
}

func (s *kv) Check(context.Context) ([]driver.Hazard, error) {
	if s.is("hazard without a fix") {
		return []driver.Hazard{{Store: "kv", Setting: "memory", Breaks: "durability"}}, nil
	}
	return []driver.Hazard{{Store: "kv", Setting: "memory", Breaks: "durability", Fix: "use a real store"}}, nil
}
