package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
)

// setupEnv makes this binary a child and tells it where its servers are.
const setupEnv = "PAWL_FAULTS_SETUP"

type setup struct {
	Identity    string
	Lock, Stock string // URLs; Stock may be empty
	TTL, Wait   time.Duration
}

// stage is what a child has for itself.
type stage struct {
	setup
	store driver.Viewer
	guard *guard.Guard
	sales map[string]sale // by mode
}

// plays are what a child can be asked for. One returns when ctx ends, which is
// when the test is done with the child.
var plays = map[string]func(ctx context.Context, s *stage, l *line, m message){
	"sell":    sellOne,
	"trade":   trade,
	"visit":   visit,
	"line up": lineUp,
	"freeze":  freezeInside,
	"churn":   churn,
	"client":  client,
}

// perform is a child's main function.
func perform(env string) int {
	s := &stage{sales: map[string]sale{}}
	if err := json.Unmarshal([]byte(env), &s.setup); err != nil {
		return s.fail(err)
	}
	store, closeStore, err := connectStore(s.Lock)
	if err != nil {
		return s.fail(err)
	}
	defer closeStore()
	s.store = store
	if s.guard, err = newGuard(profile(s.TTL, s.Wait), store, s.Identity); err != nil {
		return s.fail(err)
	}
	if s.Stock != "" {
		closeStock, err := s.openShop()
		if err != nil {
			return s.fail(err)
		}
		defer closeStock()
	}
	s.listen()
	return 0
}

func (*stage) fail(err error) int {
	fmt.Fprintln(os.Stderr, "a child of a test:", err)
	return 1
}

// listen plays what the test asks for until it closes its end.
func (s *stage) listen() {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	out := &outbox{to: json.NewEncoder(os.Stdout)}
	lines := map[int]*line{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			s.fail(err)
			return
		}
		if l := lines[m.ID]; l != nil {
			l.in <- m
			continue
		}
		l := &line{id: m.ID, in: make(chan message, 16), out: out}
		lines[m.ID] = l
		all.Go(func() { plays[m.Op](ctx, s, l, m) })
	}
}

// line is the child's end of a talk.
type line struct {
	id  int
	in  chan message
	out *outbox
}

type outbox struct {
	mu sync.Mutex
	to *json.Encoder
}

func (l *line) say(m message) {
	m.ID, m.At = l.id, monotonic()
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	_ = l.out.to.Encode(m) // a test that is gone hears nothing
}

// await waits until the test says something, or is done with the child.
func (l *line) await(ctx context.Context) message {
	select {
	case m := <-l.in:
		return m
	case <-ctx.Done():
		return message{}
	}
}

// monotonic is the time of a clock that all processes of the machine share and
// nobody sets, in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
