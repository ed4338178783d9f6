package servertest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// signal reaches the server and its children, and returns the children.
// PostgreSQL serves each connection by a child in a process group of its own: to
// stop the parent alone would leave every open connection working. It is called
// with mu held.
func (p *process) signal(s syscall.Signal) []int {
	if !p.alive() {
		return nil
	}
	parent := p.cmd.Process.Pid
	if s != syscall.SIGCONT { // stopped it makes no more children, and dying it does not lose those it has
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		awaitState(parent, "T")
	}
	children := childrenOf(parent)
	_ = p.cmd.Process.Signal(s)
	for _, child := range children {
		_ = syscall.Kill(child, s) // it may be gone
	}
	return children
}

// awaitState returns when the process is in one of states, or has no state
// because it is gone or there is no /proc. Signals are not delivered at once.
func awaitState(pid int, states string) {
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		state, _ := readStat("/proc/" + strconv.Itoa(pid) + "/stat")
		if strings.Contains(states, state) {
			return
		}
	}
}

// childrenOf is empty where there is no /proc.
func childrenOf(parent int) []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var children []int
	for _, stat := range stats {
		if _, ppid := readStat(stat); ppid != parent {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat))); err == nil {
			children = append(children, pid)
		}
	}
	return children
}

// readStat is the state and the parent in a line such as
// "12 (a name) S 1 ...". The name may hold blanks and brackets.
func readStat(file string) (state string, ppid int) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return "", 0
	}
	ppid, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return "", 0
	}
	return string(fields[0]), ppid
}
