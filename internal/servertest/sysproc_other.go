//go:build unix && !linux

package servertest

import "syscall"

// attributes cannot tie the child to the test here: a killed test leaves it.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
