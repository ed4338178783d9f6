//go:build unix

package main

import (
	"os"
	"syscall"
)

// freezes is nil where processes can be frozen.
func freezes() error { return nil }

// freeze stops p as a long garbage collection, a suspended virtual machine or a
// starved scheduler does: it notices nothing.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
