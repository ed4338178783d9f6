package servertest_test

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo answers each line with itself and remembers it.
type echo struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn

	lines chan string // as they come
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener, lines: make(chan string, 1000)}
	e.wg.Go(e.serve)
	t.Cleanup(e.close)
	return e
}

func (e *echo) addr() string { return e.listener.Addr().String() }

func (e *echo) serve() {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns = append(e.conns, conn)
		e.mu.Unlock()
		e.wg.Go(func() { e.answer(conn) })
	}
}

func (e *echo) answer(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		e.lines <- lines.Text()
		if _, err := conn.Write([]byte(lines.Text() + "\n")); err != nil {
			return
		}
	}
}

func (e *echo) close() {
	e.listener.Close()
	e.mu.Lock()
	for _, c := range e.conns {
		c.Close()
	}
	e.mu.Unlock()
	e.wg.Wait()
}

// arrived waits for a line at the server.
func (e *echo) arrived(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-e.lines:
		if got != want {
			t.Fatalf("the server got %q, want %q", got, want)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("the server did not get %q", want)
	}
}

// client is one connection.
type client struct {
	conn  net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn: conn, lines: bufio.NewReader(conn)}
}

func (c *client) send(t *testing.T, line string) {
	t.Helper()
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
}

func (c *client) read(within time.Duration) (string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) expect(t *testing.T, want string) {
	t.Helper()
	if got, err := c.read(5 * time.Second); got != want || err != nil {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

// expectSilence looks for a short while: nothing comes and nothing is closed.
func (c *client) expectSilence(t *testing.T) {
	t.Helper()
	var netErr net.Error
	if got, err := c.read(50 * time.Millisecond); !errors.As(err, &netErr) || !netErr.Timeout() {
		t.Fatalf("got %q, %v, want silence", got, err)
	}
}

func (c *client) expectClosed(t *testing.T) {
	t.Helper()
	got, err := c.read(5 * time.Second)
	var netErr net.Error
	if err == nil || got != "" || errors.As(err, &netErr) && netErr.Timeout() {
		t.Fatalf("got %q, %v, want a closed connection", got, err)
	}
}
