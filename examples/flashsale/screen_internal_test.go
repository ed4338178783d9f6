package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestScreen_KeepsToOneLineOfATerminal(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true}
	s.note("not for terminals")
	s.status(lockAndFence, 10_000, 9_999, 1000*time.Second, "holder frozen, lease runs out")
	s.status(noLock, 1, 100, time.Second, "doors open")
	s.end()
	frames := strings.Split(out.String(), "\r\x1b[K")
	if len(frames) != 4 || frames[0] != "" || frames[3] != "" {
		t.Fatalf("got %q, want two lines over each other and then an empty one", out.String())
	}
	for _, f := range frames {
		if strings.Contains(f, "\n") || utf8.RuneCountInString(f) >= 80 {
			t.Errorf("got %q, want one line of less than 80 columns", f)
		}
	}
	if want := "(a) no lock        ░░░░░░░░░░ 1/100 sold  1.0 s  doors open"; frames[2] != want {
		t.Errorf("got %q, want %q", frames[2], want)
	}
}

func TestScreen_WritesLinesElsewhere(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.note("%d sold", 1)
	s.status(noLock, 1, 100, time.Second, "doors open")
	s.end()
	if want := "1 sold\n(a) no lock: 1 of 100 sold after 1.0 s, doors open\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
