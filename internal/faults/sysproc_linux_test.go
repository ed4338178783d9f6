package faults_test

import "syscall"

// tied is a child that dies with the thread that started it, also when it is
// frozen then, and that a terminal's Ctrl-C does not reach.
func tied() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
