//go:build unix && !linux

package faults_test

import "syscall"

// tied is a child that a terminal's Ctrl-C does not reach.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
