package archtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden is a folder of files, one a package.
type golden struct {
	dir  string
	seen map[string]bool
}

func goldenFiles(t *testing.T, name string) *golden {
	t.Helper()
	dir := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &golden{dir: dir, seen: make(map[string]bool)}
}

// compare holds got against the file of a package, or writes it.
func (g *golden) compare(t *testing.T, pkg, got string) {
	t.Helper()
	name := strings.ReplaceAll(pkg, "/", "-") + ".txt"
	g.seen[name] = true
	file := filepath.Join(g.dir, name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v (run `make api`)", err)
		return
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s has changed; if that is meant, run `make api` (-want +got):\n%s", pkg, diff)
	}
}

// rest finds files of packages that are gone.
func (g *golden) rest(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if g.seen[e.Name()] {
			continue
		}
		if *update {
			if err := os.Remove(filepath.Join(g.dir, e.Name())); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("%s is of no package (run `make api`)", filepath.Join(g.dir, e.Name()))
	}
}
