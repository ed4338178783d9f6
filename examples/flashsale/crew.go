package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// patience is how long a process may take to end by itself.
const patience = 5 * time.Second

// crew are the processes that sell. Its methods are for one goroutine.
type crew struct {
	members []*member
	reports chan report
	closed  chan struct{} // nobody reads reports any more
	deaf    sync.Once     // closes it
}

// member is a child process.
type member struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	orders *json.Encoder
	gone   chan struct{} // closed when the process has been waited for
	number int
}

// hire starts n processes of this program.
func hire(ctx context.Context, n int) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program cannot start itself: %w", err)
	}
	c := &crew{reports: make(chan report, 64), closed: make(chan struct{})}
	for i := range n {
		// Not bound to ctx, which would kill it: stop ends it in order.
		cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
		cmd.Env = append(os.Environ(), roleVariable+"="+roleShop)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = attributes()
		m := &member{cmd: cmd, gone: make(chan struct{}), number: i}
		if err := m.start(c); err != nil {
			c.stop()
			return nil, fmt.Errorf("process %d did not start: %w", i+1, err)
		}
		c.members = append(c.members, m)
	}
	return c, nil
}

func (m *member) start(c *crew) (err error) {
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return err
	}
	m.orders = json.NewEncoder(m.stdin)
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		// Linux signals the child when the thread that started it ends. This thread
		// lives as long as the child: never unlocked, it ends with the goroutine.
		runtime.LockOSThread()
		defer close(m.gone)
		err := m.cmd.Start()
		started <- err
		if err == nil {
			m.attend(c, out)
		}
	}()
	return <-started
}

// attend passes the reports of the process on until it has ended.
func (m *member) attend(c *crew, out io.Reader) {
	pass := func(r report) {
		r.Process = m.number
		select {
		case c.reports <- r:
		case <-c.closed:
		}
	}
	lines := json.NewDecoder(out)
	for {
		var r report
		if err := lines.Decode(&r); err != nil {
			break
		}
		pass(r)
	}
	_, _ = io.Copy(io.Discard, out) // to its end, which Wait needs
	_ = m.cmd.Wait()                // how it ended is in ProcessState
	pass(report{Is: ended, Text: m.cmd.ProcessState.String()})
}

// tell gives member i an instruction.
func (c *crew) tell(i int, what instruction) error {
	if err := c.members[i].orders.Encode(what); err != nil {
		return fmt.Errorf("process %d does not listen: %w", i+1, err)
	}
	return nil
}

func (c *crew) freeze(i int) error { return freeze(c.members[i].cmd.Process) }
func (c *crew) thaw(i int) error   { return thaw(c.members[i].cmd.Process) }

// dismiss ends all processes in order.
func (c *crew) dismiss() error {
	c.deaf.Do(func() { close(c.closed) })
	var errs []error
	for i := range c.members {
		errs = append(errs, c.tell(i, instruction{Do: leave}))
	}
	c.await()
	for i, m := range c.members {
		if !m.cmd.ProcessState.Success() {
			errs = append(errs, fmt.Errorf("process %d ended badly: %v", i+1, m.cmd.ProcessState))
		}
	}
	return errors.Join(errs...)
}

// stop ends what is still there, whatever it is doing, frozen or not.
func (c *crew) stop() {
	c.deaf.Do(func() { close(c.closed) })
	for _, m := range c.members {
		_ = m.stdin.Close() // errors say that it has ended
		_ = thaw(m.cmd.Process)
	}
	c.await()
}

// await returns when all processes have ended. Who does not end by itself is
// killed.
func (c *crew) await() {
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, m := range c.members {
		select {
		case <-m.gone:
		case <-late.Done():
			_ = m.cmd.Process.Kill() // it may have ended just now
			<-m.gone
		}
	}
}
