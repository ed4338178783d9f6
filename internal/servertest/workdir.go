package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// workdir is where database servers live: <temp>/pawl-servertest-<uid>/. Its name
// does not change, so that a prepared data directory serves many test processes,
// and it can be entered by another user, since PostgreSQL refuses to run as root;
// neither is true of t.TempDir.
//
//	lock           held while the directory is changed
//	<name>-<...>   a prepared data directory
//	init-<...>     one that is being prepared
//	run-<...>      the servers of one test process, which keeps run-<...>/lock
type workdir struct {
	run  string
	lock *os.File // held until the process ends
}

func baseDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("pawl-servertest-%d", os.Getuid()))
}

// openWorkdir makes the directory of this test process and removes those of
// processes that died.
func openWorkdir() (*workdir, error) {
	unlock, err := lockBase()
	if err != nil {
		return nil, err
	}
	defer unlock()
	sweep()
	run, err := os.MkdirTemp(baseDir(), "run-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(run, 0o755); err != nil { // another user has to enter it
		return nil, err
	}
	lock, err := lockFile(filepath.Join(run, "lock"), 0)
	if err != nil {
		return nil, err
	}
	return &workdir{run: run, lock: lock}, nil
}

func (w *workdir) close() {
	_ = os.RemoveAll(w.run) // what is left goes with the next sweep
	_ = w.lock.Close()
}

// lockBase keeps other test processes out until unlock.
func lockBase() (unlock func(), err error) {
	base := baseDir()
	if err := os.Mkdir(base, 0o755); err != nil && !os.IsExist(err) { // another user has to enter it
		return nil, err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() {
		return nil, fmt.Errorf("servertest: %s is not a directory of this user", base)
	}
	lock, err := lockFile(filepath.Join(base, "lock"), 0)
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// lockFile opens and locks path; how may be LOCK_NB. The kernel unlocks it when the
// file is closed or the process dies; children do not inherit it.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|how)
		if err != syscall.EINTR { //nolint:errorlint // it is a number
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("servertest: locking %s: %w", path, err)
	}
	return f, nil
}

// sweep removes what dead processes left. It is called with the base locked, so
// nobody is preparing and nobody is between making run-<...> and locking it.
func sweep() {
	entries, err := os.ReadDir(baseDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(baseDir(), e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "init-"):
			_ = os.RemoveAll(path)
		case strings.HasPrefix(e.Name(), "run-"):
			if lock, err := lockFile(filepath.Join(path, "lock"), syscall.LOCK_NB); err == nil {
				_ = os.RemoveAll(path)
				_ = lock.Close()
			}
		}
	}
}
