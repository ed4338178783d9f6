package servertest

import "syscall"

// attributes ties the child to the thread that starts it, and keeps a terminal's
// Ctrl-C from reaching it before the test has ended.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Credential: as}
}
