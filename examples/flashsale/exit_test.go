//go:build unix

package main_test

import (
	"strings"
	"syscall"
	"testing"
)

const frozenLine = "is frozen, with the lock"

func few() []string { return []string{"-units", "8", "-buyers", "12"} }

// send signals the program when a line of its progress contains text.
func send(s syscall.Signal, text string) func(p *program, line string) {
	return func(p *program, line string) {
		if strings.Contains(line, text) {
			_ = p.cmd.Process.Signal(s) // wait says what came of it
		}
	}
}

func TestFlashsale_LeavesNothingWhenInterrupted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, at := range []string{"(a) no lock: doors open", frozenLine} {
			t.Run(s.String()+" at "+at, func(t *testing.T) {
				p := start(t, send(s, at), few()...)
				if code := p.wait(); code != 130 {
					t.Errorf("got exit status %d, want 130\n%s", code, p.text())
				}
				if !strings.Contains(p.log.String(), "interrupted") || p.out.Len() > 0 {
					t.Errorf("got no word on the interruption, or a table\n%s", p.text())
				}
			})
		}
	}
}

// A program that is killed cannot clean up. Its processes do, the frozen one
// included.
func TestFlashsale_LeavesNothingWhenKilled(t *testing.T) {
	for _, at := range []string{"(a) no lock: doors open", frozenLine} {
		t.Run(at, func(t *testing.T) {
			p := start(t, send(syscall.SIGKILL, at), few()...)
			if code := p.wait(); code != -1 {
				t.Errorf("got exit status %d, want -1\n%s", code, p.text())
			}
		})
	}
}
