//go:build !unix

package main

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

func freezes() error {
	return errors.New("it freezes a process with the signal SIGSTOP, which " + runtime.GOOS + " does not have: run it on Linux or macOS")
}

func freeze(*os.Process) error { return freezes() }

func thaw(*os.Process) error { return freezes() }

func attributes() *syscall.SysProcAttr { return nil }
