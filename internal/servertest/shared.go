package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// engine is a kind of database server.
type engine struct {
	recipe recipe
	// command runs a server on dir/data.
	command func(dir string, listen *port, args []string) command
	dialect func(addr string) *dialect
}

// pool is the database servers of this test process: one of a kind, for all tests,
// since one costs a second and 100 MiB. The process is their only owner, hence the
// variable.
type pool struct {
	mu      sync.Mutex
	work    *workdir // nil before it is needed
	running map[string]*Server
	failed  map[string]error // not tried again for every test
}

var servers = pool{running: make(map[string]*Server), failed: make(map[string]error)} //nolint:gochecknoglobals // one of a kind a process

// get is the running server of a kind, started when it is not, revived when a test
// left it paused or dead.
func (p *pool) get(t testing.TB, e engine) *Server {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	name := e.recipe.name
	s := p.running[name]
	if s == nil && p.failed[name] == nil {
		s, p.failed[name] = p.start(e)
	}
	if err := p.failed[name]; err != nil {
		t.Fatal(err)
	}
	p.running[name] = s
	if err := s.process.revive(); err != nil {
		t.Fatal(err)
	}
	mine := *s
	mine.t = t
	t.Cleanup(func() {
		if err := mine.process.revive(); err != nil {
			t.Error(err)
		}
	})
	return &mine
}

// private starts a server of the test's own.
func (p *pool) private(t testing.TB, e engine, args []string) *Server {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.start(e, args...)
	if err != nil {
		t.Fatal(err)
	}
	s.t = t
	t.Cleanup(func() {
		s.process.release()
		_ = os.RemoveAll(s.process.command.dir) // else with the process
	})
	return s
}

// start is called with mu held.
func (p *pool) start(e engine, args ...string) (_ *Server, err error) {
	dir, err := p.newDir(e.recipe)
	if err != nil {
		return nil, err
	}
	if err := e.recipe.copyTo(filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	listen, err := reservePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: listen.addr(), sql: e.dialect(listen.addr())}
	c := e.command(dir, listen, args)
	c.dir, c.as, c.ping = dir, e.recipe.as, s.sql.ping
	s.process = &process{command: c, ports: []*port{listen}}
	if err := s.process.start(); err != nil {
		listen.release()
		return nil, fmt.Errorf("%w\n(remove %s if a prepared directory there is damaged)", err, baseDir())
	}
	return s, nil
}

func (p *pool) newDir(r recipe) (string, error) {
	if p.work == nil {
		work, err := openWorkdir()
		if err != nil {
			return "", err
		}
		p.work = work
	}
	dir, err := os.MkdirTemp(p.work.run, r.name+"-")
	if err != nil {
		return "", err
	}
	return dir, r.chown(dir)
}

// close stops what runs.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.running {
		s.process.release()
		delete(p.running, name)
	}
	if p.work != nil {
		p.work.close()
		p.work = nil
	}
}
