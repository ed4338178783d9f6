package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	barWidth = 10
	narrow   = 79 // columns of a terminal that are surely there
	// A log gets a line when something happens, and at least this often.
	heartbeat = 2 * time.Second
)

// screen shows progress: on a terminal one line that changes, else a line for
// each event. It is for one goroutine.
type screen struct {
	out      io.Writer
	terminal bool
	every    time.Duration // between two calls of status
	dirty    bool          // the status line is shown
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, terminal: isTerminal(out), every: heartbeat}
	if s.terminal {
		s.every = 50 * time.Millisecond
	}
	return s
}

// isTerminal reports whether w takes what terminals understand.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say is a line for everybody.
func (s *screen) say(format string, args ...any) {
	s.end()
	s.write(fmt.Sprintf(format+"\n", args...))
}

// note is a line of the log.
func (s *screen) note(format string, args ...any) {
	if !s.terminal {
		s.say(format, args...)
	}
}

// status shows how far a sale is.
func (s *screen) status(row protection, sold, units int, since time.Duration, phase string) {
	if !s.terminal {
		s.note("%s: %d of %d sold after %s, %s", row.label(), sold, units, seconds(since), phase)
		return
	}
	full := min(barWidth, barWidth*sold/units)
	bar := strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
	line := []rune(fmt.Sprintf("%-18s %s %d/%d sold  %s  %s", row.label(), bar, sold, units, seconds(since), phase))
	s.write("\r\x1b[K" + string(line[:min(len(line), narrow)])) // one that wraps could not be erased
	s.dirty = true
}

// end leaves a clean line.
func (s *screen) end() {
	if s.dirty {
		s.write("\r\x1b[K")
	}
	s.dirty = false
}

// write ignores errors: a program whose progress nobody sees goes on.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }
