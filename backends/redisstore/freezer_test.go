package redisstore_test

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// freezer dials connections that can be made half-open one by one: what is
// written to a frozen one disappears, and nothing is read from it any more.
type freezer struct {
	mu    sync.Mutex
	wires []*wire
}

func (f *freezer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, frozen: make(chan struct{}), closed: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wires = append(f.wires, w)
	return w, nil
}

// freeze freezes every connection that was dialled so far.
func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.wires {
		w.once.Do(func() { close(w.frozen) })
	}
}

type wire struct {
	net.Conn
	once, end      sync.Once
	frozen, closed chan struct{}

	mu       sync.Mutex
	deadline time.Time
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	select {
	case <-w.frozen:
	default:
		return n, err
	}
	w.mu.Lock()
	deadline := w.deadline
	w.mu.Unlock()
	if deadline.IsZero() {
		<-w.closed
		return 0, net.ErrClosed
	}
	select {
	case <-w.closed:
		return 0, net.ErrClosed
	case <-time.After(time.Until(deadline)):
		return 0, os.ErrDeadlineExceeded
	}
}

func (w *wire) Write(b []byte) (int, error) {
	select {
	case <-w.frozen:
		return len(b), nil
	default:
		return w.Conn.Write(b)
	}
}

func (w *wire) SetDeadline(t time.Time) error {
	_ = w.SetReadDeadline(t)
	return w.SetWriteDeadline(t)
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	return w.Conn.SetReadDeadline(t)
}

func (w *wire) Close() error {
	w.end.Do(func() { close(w.closed) })
	return w.Conn.Close()
}
