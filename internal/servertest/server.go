package servertest

import (
	"fmt"
	"syscall"
	"testing"
)

// Server is a running server. Its methods are safe for concurrent use; those
// that need the process must be called from the test's goroutine when the server
// came from the environment, since they skip the test.
type Server struct {
	// Addr is "127.0.0.1:port", the same after a Restart.
	Addr string

	t       testing.TB
	process *process // nil: not ours
	sql     *dialect // nil: not a database
}

// Pause stops the process (SIGSTOP) with all that it is doing: connections stay
// open, the kernel still accepts new ones, and nothing is answered. Cleanup
// resumes it.
func (s *Server) Pause() { s.own("paused").send(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() { s.own("resumed").send(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL) and returns when it is gone.
// Connections are refused until Restart.
func (s *Server) Kill() { s.own("killed").kill() }

// Restart starts the server again with the same port, directory and arguments;
// it stops it first if it runs. What it remembers is what it had written to disk.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	p := s.own("restarted")
	p.stop()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) own(wanted string) *process {
	s.t.Helper()
	if s.process == nil {
		unavailable(s.t, fmt.Sprintf("the server at %s is not ours: it cannot be %s", s.Addr, wanted))
	}
	return s.process
}

// launch starts a server that lives as long as its test.
func launch(t testing.TB, c command, ports ...*port) *Server {
	t.Helper()
	p := &process{command: c, ports: ports}
	t.Cleanup(p.release)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	return &Server{Addr: ports[0].addr(), t: t, process: p}
}

// reserve is reservePort for a test. The port is given back by the server that
// gets it.
func reserve(t testing.TB) *port {
	t.Helper()
	p, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
