package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	pollEvery    = 5 * time.Millisecond
	startTimeout = 30 * time.Second // a server starts in 40 ms to 1 s; a loaded machine may be far slower
	stopTimeout  = 5 * time.Second
)

// command is how a server is started, each time it is.
type command struct {
	path string
	args []string
	dir  string // private to the server
	as   *syscall.Credential
	term syscall.Signal                  // asks it to stop
	ping func(ctx context.Context) error // nil when it serves
}

// process is a server that can be started again after it was killed.
type process struct {
	command command
	ports   []*port

	mu   sync.Mutex // orders start, stop and signals
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has been waited for
}

// start runs the command and returns when it serves.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive() {
		return errors.New("servertest: it runs already")
	}
	if err := p.spawn(); err != nil {
		return err
	}
	if err := p.awaitReady(); err != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("servertest: %s: %w\n%s", filepath.Base(p.command.path), err, p.logTail())
	}
	return nil
}

// spawn starts the child from a thread that lives as long as the child does:
// Linux sends the death signal when the thread that forked dies, not the process.
func (p *process) spawn() error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own copy
	// A background context: the server outlives the call and is stopped by name.
	cmd := exec.CommandContext(context.Background(), p.command.path, p.command.args...)
	cmd.Dir = p.command.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(p.command.as)
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended does not matter, that it did does
		}
	}()
	if err := <-started; err != nil {
		<-done
		return err
	}
	p.cmd, p.done = cmd, done
	return nil
}

func (p *process) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		select {
		case <-p.done:
			cancel() // no use in asking again
			return errors.New("ended while it was starting")
		default:
			return p.command.ping(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	return nil
}

// poll asks every 5 ms until ask returns nil. When ctx ends it returns what ask
// said last.
func poll(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// alive is called with mu held.
func (p *process) alive() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop ends the server in order. A stopped one (SIGSTOP) hears nothing but
// SIGCONT and SIGKILL, so it is woken first.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return
	}
	p.signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(p.command.term) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return
	}
	children := p.signal(syscall.SIGKILL)
	<-p.done
	for _, child := range children { // PostgreSQL does not start again beside a child of before
		awaitState(child, "Z")
	}
}

// send signals the server if it runs.
func (p *process) send(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive() {
		p.signal(s)
	}
}

// revive wakes a paused server and starts a dead one.
func (p *process) revive() error {
	p.mu.Lock()
	alive := p.alive()
	if alive {
		p.signal(syscall.SIGCONT)
	}
	p.mu.Unlock()
	if alive {
		return nil
	}
	return p.start()
}

// release stops the server and gives its ports back.
func (p *process) release() {
	p.stop()
	for _, port := range p.ports {
		port.release()
	}
}

func (p *process) logFile() string { return filepath.Join(p.command.dir, "log") }

// logTail is the end of what the server said.
func (p *process) logTail() string {
	const lines = 30
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
