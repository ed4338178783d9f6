package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// program is the example, started by a test with a temporary directory of its
// own.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	temp string
	out  bytes.Buffer
	log  bytes.Buffer
	done chan struct{} // closed when the log has ended, and with it every process that could write to it
}

// start runs the program. watch sees each line of its progress.
func start(t *testing.T, watch func(p *program, line string), args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	p := &program{t: t, cmd: exec.CommandContext(ctx, self, args...), temp: t.TempDir(), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "PAWL_FLASHSALE_PROGRAM=1", "TMPDIR="+p.temp)
	p.cmd.Stdout = &p.out
	log, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = ours
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	go func() {
		defer close(p.done)
		defer log.Close()
		lines := bufio.NewScanner(io.TeeReader(log, &p.log))
		for lines.Scan() {
			watch(p, lines.Text())
		}
	}()
	return p
}

// wait returns the exit status (-1: a signal ended it) when the program and all its
// processes have ended.
func (p *program) wait() int {
	p.t.Helper()
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Fatal("got a process that is left 20 s after the program has ended, want none")
	}
	left, err := os.ReadDir(p.temp)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(left) > 0 {
		p.t.Errorf("got %v left in the temporary directory, want nothing", left)
	}
	return p.cmd.ProcessState.ExitCode()
}

func perform(t *testing.T, args ...string) (p *program, code int) {
	t.Helper()
	p = start(t, func(*program, string) {}, args...)
	return p, p.wait()
}

func (p *program) text() string {
	return "output:\n" + p.out.String() + "\nprogress:\n" + p.log.String()
}

// row returns the cells of the table behind a label, and the verdict.
func (p *program) row(label string) (cells []string, verdict string) {
	p.t.Helper()
	const columns = 7
	for line := range strings.Lines(p.out.String()) {
		if rest, ok := strings.CutPrefix(line, label); ok && strings.HasPrefix(rest, " ") {
			if cells = strings.Fields(rest); len(cells) > columns {
				return cells[:columns], strings.Join(cells[columns:], " ")
			}
		}
	}
	p.t.Fatalf("got no row %q\n%s", label, p.text())
	return nil, ""
}
