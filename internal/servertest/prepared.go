package servertest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// recipe makes the data directory of a database server, which takes seconds, while a
// copy takes a fraction of one.
type recipe struct {
	name    string
	server  string              // its binary, asked for its version
	as      *syscall.Credential // the user it runs as, or nil
	command func(dir string) []string
}

// prepared is the data directory for this version of the server, made by whoever
// needs it first on this machine.
func (r recipe) prepared() (string, error) {
	version, err := exec.CommandContext(context.Background(), r.server, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("servertest: %s --version: %w", r.server, err)
	}
	path := filepath.Join(baseDir(), fmt.Sprintf("%s-%d-%s", r.name, r.uid(), fileName(string(version))))
	unlock, err := lockBase()
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	building, err := os.MkdirTemp(baseDir(), "init-")
	if err != nil {
		return "", err
	}
	if err := r.init(filepath.Join(building, "data")); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(building, "data"), path); err != nil {
		return "", err
	}
	return path, os.Remove(building)
}

func (r recipe) init(dir string) error {
	if err := r.mkdir(dir); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // another user has to enter it
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args := r.command(dir)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("servertest: %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// copyTo fills dir, which must not exist, from the prepared directory.
func (r recipe) copyTo(dir string) error {
	from, err := r.prepared()
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return r.mkdir(to)
		}
		return r.copyFile(path, to)
	})
}

func (r recipe) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return r.chown(dir)
}

func (r recipe) copyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it was only read
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		_ = dst.Close() // the first error says more
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	return r.chown(to)
}

func (r recipe) chown(path string) error {
	if r.as == nil {
		return nil
	}
	return os.Chown(path, int(r.as.Uid), int(r.as.Gid))
}

func (r recipe) uid() int {
	if r.as == nil {
		return os.Getuid()
	}
	return int(r.as.Uid)
}

// fileName is text as part of a file's name.
func fileName(text string) string {
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(text, "-"), "-")
}
