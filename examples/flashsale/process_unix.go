//go:build unix && !linux

package main

import "syscall"

// attributes make a child that does not outlive its parent. It notices the end
// of its stdin by itself, unless it is frozen just then: the parent's death
// orphans the child's own process group, and POSIX wakes what is stopped in
// one. The group also keeps the terminal's Ctrl-C from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
