package servertest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server and breaks the network between them.
// Its methods are safe for concurrent use. What it has been told applies to
// connections that are open and to those that come.
type Proxy struct {
	t    testing.TB
	port *port // keeps the address while nothing listens
	wg   sync.WaitGroup

	mu      sync.Mutex
	target  string
	delay   time.Duration
	faults  faults
	changed chan struct{} // closed and replaced when faults change
	accept  net.Listener  // nil after Cut and after the end
	links   map[*link]struct{}
	drop    *drop // the latest that was armed, or nil
	closed  bool
}

// faults is what is wrong at the moment.
type faults struct{ hold, holdReplies bool }

// NewProxy listens on a free loopback port for connections to target, "host:port".
// Cleanup closes it and its connections and waits for its goroutines.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, port: reserve(t), target: target, changed: make(chan struct{}), links: make(map[*link]struct{})}
	t.Cleanup(p.close)
	p.Heal()
	return p
}

// Addr is where clients connect, "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.port.addr() }

// SetTarget names the server of connections to come. Those that are open keep
// theirs: Cut and Heal move everybody.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Delay adds d to the way of each byte, in both directions; the throughput stays.
// Bytes that are on their way keep the delay they started with.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut closes all connections, what was held on them is lost, and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// cut is called with mu held.
func (p *Proxy) cut() {
	if p.accept != nil {
		_ = p.accept.Close() // ends serve
		p.accept = nil
	}
	for l := range p.links {
		l.close()
	}
}

// Hold keeps connections open, accepts new ones, and lets nothing pass in either
// direction: a network that swallows packets.
func (p *Proxy) Hold() { p.set(faults{hold: true}) }

// HoldReplies lets requests reach the server and keeps its replies.
func (p *Proxy) HoldReplies() { p.set(faults{holdReplies: true}) }

func (p *Proxy) set(f faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// Heal undoes Cut, Hold and HoldReplies. What was held flows on, also to a peer
// whose other side has left by now: that is how a late request lands. Delay and an
// armed drop stay.
func (p *Proxy) Heal() {
	p.set(faults{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accept != nil || p.closed {
		return
	}
	l, err := net.Listen("tcp", p.port.addr()) //nolint:noctx // it does not wait
	if err != nil {
		p.t.Errorf("proxy: listening again: %v", err)
		return
	}
	p.accept = l
	p.wg.Go(func() { p.serve(l) })
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.cut()
	p.mu.Unlock()
	p.wg.Wait()
	p.port.release()
}

// serve accepts until l is closed.
func (p *Proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.accept != l { // Cut came between
			_ = client.Close()
			p.mu.Unlock()
			return
		}
		p.start(client)
		p.mu.Unlock()
	}
}

// start is called with mu held.
func (p *Proxy) start(client net.Conn) {
	ctx, cancel := context.WithCancel(context.Background()) // close ends it
	l := &link{proxy: p, client: client, cancel: cancel, done: ctx.Done()}
	p.links[l] = struct{}{}
	p.wg.Go(func() { l.run(ctx) })
}

// pass returns when f no longer holds, or false when done is closed first.
func (p *Proxy) pass(done <-chan struct{}, held func(faults) bool) bool {
	for {
		p.mu.Lock()
		is, changed := held(p.faults), p.changed
		p.mu.Unlock()
		if !is {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// due is when what was read now may be written.
func (p *Proxy) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.delay)
}

func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	dialer := net.Dialer{Timeout: stopTimeout}
	return dialer.DialContext(ctx, "tcp", target)
}
