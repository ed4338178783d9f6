package main

import "syscall"

// attributes make a child that does not outlive its parent. It notices the end
// of its stdin by itself, unless it is frozen just then: it is woken when the
// parent dies. A process group of its own keeps the terminal's Ctrl-C from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}
