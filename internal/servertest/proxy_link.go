package servertest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
)

// link is one connection through a Proxy.
type link struct {
	proxy  *Proxy
	client net.Conn

	cancel func()          // closes done
	done   <-chan struct{} // the link is closed

	mu     sync.Mutex
	server net.Conn // nil before it is dialled
	owed   *drop    // the next reply is to be lost

	tail []byte // the end of the last request, for a match that begins in it
}

// chunk is what one read brought.
type chunk struct {
	bytes []byte
	due   time.Time
}

// close ends the link at once; what is held is lost.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	_ = l.client.Close() // it may be closed
	if l.server != nil {
		_ = l.server.Close()
	}
	if l.owed != nil { // no reply can come any more: it is lost
		l.owed.happened()
		l.owed = nil
	}
}

// run returns when both directions have ended.
func (l *link) run(ctx context.Context) {
	defer l.proxy.remove(l)
	defer l.close()
	if !l.connect(ctx) {
		return
	}
	var wg sync.WaitGroup
	requests, replies := make(chan chunk, 64), make(chan chunk, 64)
	wg.Go(func() { l.read(l.client, requests, func() bool { return true }) })
	wg.Go(func() { l.read(l.server, replies, l.deliver) })
	wg.Go(func() {
		l.write(l.server, requests, func(f faults) bool { return f.hold }, l.watch)
		closeWrite(l.server) // the client has left, its last requests have not
	})
	wg.Go(func() {
		l.write(l.client, replies, func(f faults) bool { return f.hold || f.holdReplies }, func([]byte) {})
		l.close() // a server that has left answers nothing more
	})
	wg.Wait()
}

// connect dials the server, once nothing is held.
func (l *link) connect(ctx context.Context) bool {
	if !l.proxy.pass(l.done, func(f faults) bool { return f.hold }) {
		return false
	}
	server, err := l.proxy.dial(ctx)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil { // closed meanwhile
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// read turns what comes from src into chunks, until it ends or keep says no.
func (l *link) read(src net.Conn, to chan<- chunk, keep func() bool) {
	defer close(to)
	buffer := make([]byte, 32<<10)
	for {
		n, err := src.Read(buffer)
		if n > 0 {
			if !keep() {
				return
			}
			select {
			case to <- chunk{bytes: bytes.Clone(buffer[:n]), due: l.proxy.due()}:
			case <-l.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write passes chunks on when they are due and not held. When dst has left it
// goes on without it, so that the other direction is not cut short.
func (l *link) write(dst net.Conn, from <-chan chunk, held func(faults) bool, before func([]byte)) {
	left := false
	for c := range from {
		if !l.sleepUntil(c.due) || !l.proxy.pass(l.done, held) {
			return
		}
		if left {
			continue
		}
		before(c.bytes)
		_, err := dst.Write(c.bytes)
		left = err != nil
	}
}

func (l *link) sleepUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}

func closeWrite(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // it may be closed
	}
}
