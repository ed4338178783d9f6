package servertest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeRecipe prepares a directory with one file and notes each time it does.
func fakeRecipe(t *testing.T) (r recipe, notes string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	server := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(server, []byte("#!/bin/sh\necho fake 1.0 / odd:name\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	notes = filepath.Join(t.TempDir(), "notes")
	return recipe{name: "fake", server: server, command: func(dir string) []string {
		return []string{"sh", "-c", "echo . >> " + notes + "; sleep 0.05; mkdir " + dir + "/sub; echo data > " + dir + "/sub/file"}
	}}, notes
}

func TestRecipe_PreparesOnceForAllWhoRace(t *testing.T) {
	r, notes := fakeRecipe(t)
	var wg sync.WaitGroup
	for range 8 {
		to := filepath.Join(t.TempDir(), "data")
		wg.Go(func() {
			if err := r.copyTo(to); err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(to, "sub", "file")); string(got) != "data\n" {
				t.Errorf("got %q, %v, want a full copy", got, err)
			}
		})
	}
	wg.Wait()
	if got, err := os.ReadFile(notes); string(got) != ".\n" {
		t.Errorf("got %q, %v, want it prepared once", got, err)
	}
}

func TestRecipe_FailureLeavesNothingToCopy(t *testing.T) {
	r, _ := fakeRecipe(t)
	good := r.command
	r.command = func(dir string) []string { return []string{"sh", "-c", "echo half > " + dir + "/f; echo why; exit 1"} }
	if err := r.copyTo(filepath.Join(t.TempDir(), "data")); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v, want what the command said", err)
	}
	r.command = good
	to := filepath.Join(t.TempDir(), "data")
	if err := r.copyTo(to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, "f")); !os.IsNotExist(err) {
		t.Errorf("got %v, want no file of the failed attempt", err)
	}
}

func TestWorkdir_SweepsTheDeadAndKeepsTheLiving(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	living, err := openWorkdir()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := openWorkdir()
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does
	half := filepath.Join(baseDir(), "init-1")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	third, err := openWorkdir()
	if err != nil {
		t.Fatal(err)
	}
	third.close()
	for path, want := range map[string]bool{living.run: true, dead.run: false, half: false, third.run: false} {
		if _, err := os.Stat(path); os.IsNotExist(err) == want {
			t.Errorf("%s: got %v, want it there: %v", path, err, want)
		}
	}
	living.close()
}

func TestPort_IsOursUntilReleased(t *testing.T) {
	p, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer p.release()
	for range 200 { // the kernel must not hand it out, and refuses it to who asks
		other, err := reservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer other.release()
		if other.number == p.number {
			t.Fatalf("got port %d twice", p.number)
		}
	}
}

func TestChildren_FindsADirectChild(t *testing.T) {
	if got, _ := readStat("/proc/self/stat"); got == "" {
		t.Error("got no state of the own process")
	}
	if got := childrenOf(os.Getppid()); len(got) == 0 {
		t.Error("got no children of the parent, want at least this process")
	}
}
