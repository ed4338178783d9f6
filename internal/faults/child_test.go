package faults_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/history"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// message goes both ways between a test and its children, one JSON value a line.
// ID names the conversation that it belongs to.
type message struct {
	ID       int
	Op       string
	Key      string           `json:",omitempty"`
	Keys     []string         `json:",omitempty"`
	Mode     string           `json:",omitempty"`
	N        int64            `json:",omitempty"`
	Unsure   int64            `json:",omitempty"`
	Token    uint64           `json:",omitempty"`
	For      time.Duration    `json:",omitempty"`
	Think    time.Duration    `json:",omitempty"`
	Locked   bool             `json:",omitempty"`
	Err      string           `json:",omitempty"`
	Starts   []start          `json:",omitempty"`
	Grants   []history.Grant  `json:",omitempty"`
	Accesses []history.Access `json:",omitempty"`
	At       int64            `json:",omitempty"` // monotonic clock of the machine
}

// child is another process of this test binary: what it does is in stage_test.go.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has been waited for

	mu    sync.Mutex
	in    io.WriteCloser
	talks []*talk
}

// spawn starts a child. It is ended when the test is, and by the kernel when the
// test binary dies.
func spawn(t *testing.T, s setup) *child {
	t.Helper()
	env, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), setupEnv+"="+string(env))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = tied()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, done: make(chan struct{})}
	if err := c.start(out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	return c
}

// start forks on a thread that lives as long as the child: Linux sends the death
// signal when the thread that forked dies.
func (c *child) start(out io.Reader) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		defer close(c.done)
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.route(out)
			_ = c.cmd.Wait() // that it ended is what counts
		}
	}()
	return <-started
}

// route hands what the child says to the conversations.
func (c *child) route(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			c.t.Errorf("a child said %q: %v", lines.Text(), err)
			continue
		}
		c.mu.Lock()
		k := c.talks[m.ID]
		c.mu.Unlock()
		k.events <- m
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.talks {
		close(k.events)
	}
}

func (c *child) end() {
	c.signal(syscall.SIGCONT)
	_ = c.in.Close() // ends it
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Errorf("a child did not end; killed")
		c.signal(syscall.SIGKILL)
		<-c.done
	}
}

// stop freezes the child: all of its threads, wherever they are.
func (c *child) stop() { c.signal(syscall.SIGSTOP) }

// resume lets it go on as if nothing had been.
func (c *child) resume() { c.signal(syscall.SIGCONT) }

func (c *child) signal(s syscall.Signal) {
	if err := c.cmd.Process.Signal(s); err != nil && s != syscall.SIGCONT {
		c.t.Errorf("signal %v to a child: %v", s, err)
	}
}

// talk is one conversation with a child: it was asked for something and tells how
// that goes.
type talk struct {
	c      *child
	id     int
	events chan message
}

// ask begins a conversation.
func (c *child) ask(m message) *talk {
	c.mu.Lock()
	k := &talk{c: c, id: len(c.talks), events: make(chan message, 16)}
	c.talks = append(c.talks, k)
	c.mu.Unlock()
	k.send(m)
	return k
}

func (k *talk) tell(op string) { k.send(message{Op: op}) }

func (k *talk) send(m message) {
	m.ID = k.id
	line, err := json.Marshal(m)
	if err != nil {
		k.c.t.Fatal(err)
	}
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if _, err := k.c.in.Write(append(line, '\n')); err != nil {
		k.c.t.Errorf("tell a child %q: %v", m.Op, err)
	}
}

// next is what the child says next.
func (k *talk) next() message {
	k.c.t.Helper()
	select {
	case m, ok := <-k.events:
		if !ok {
			k.c.t.Fatal("a child died")
		}
		return m
	case <-time.After(patience):
		k.c.t.Fatal("a child says nothing")
	}
	return message{}
}

// expect waits for the child to say op.
func (k *talk) expect(op string) message {
	k.c.t.Helper()
	m := k.next()
	if m.Op != op {
		k.c.t.Fatalf("a child said %q (%s), want %q", m.Op, m.Err, op)
	}
	return m
}
