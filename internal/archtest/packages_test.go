package archtest_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/pawl-go/pawl"

var update = flag.Bool("update", false, "write the golden files")

// pkg is what is needed of `go list -json`.
type pkg struct {
	ImportPath, Name, Dir string
	Standard              bool
	Module                *struct{ Path string }
	GoFiles, Imports      []string
}

// graph is every package that the module compiles, by import path.
type graph map[string]pkg

// load asks once for the whole module. Tests are not part of the graph: they may
// import what they like.
var load = sync.OnceValues(func() (graph, error) {
	// Read only so that a cached result of go test does not outlive a change of it;
	// the sources are read by other tests here.
	if _, err := os.ReadFile(filepath.Join("..", "..", "go.mod")); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Dir,Standard,Module,GoFiles,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.New(string(exit.Stderr))
		}
		return nil, err
	}
	g := make(graph)
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return g, nil
		case err != nil:
			return nil, err
		}
		g[p.ImportPath] = p
	}
})

func packages(t *testing.T) graph {
	t.Helper()
	g, err := load()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return g
}

// own are the module's packages, sorted, by path inside the module: "guard".
func (g graph) own() []string {
	var paths []string
	for path := range g {
		if inside, ok := strings.CutPrefix(path, module+"/"); ok {
			paths = append(paths, inside)
		}
	}
	slices.Sort(paths)
	return paths
}

// public are those of own that users import.
func (g graph) public() []string {
	return slices.DeleteFunc(g.own(), func(path string) bool { return isInternal(path) || isExample(path) })
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

func isExample(path string) bool { return strings.HasPrefix(path, "examples/") }

// closure is everything that a program links which imports paths, by import path.
func (g graph) closure(paths ...string) []string {
	seen := make(map[string]bool)
	var visit func(string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		for _, next := range g[path].Imports {
			visit(next)
		}
	}
	for _, path := range paths {
		visit(path)
	}
	return slices.Sorted(maps.Keys(seen))
}

// modules are the other modules that a program links which imports paths.
func (g graph) modules(paths ...string) []string {
	found := make(map[string]bool)
	for _, path := range g.closure(paths...) {
		if m := g[path].Module; m != nil && m.Path != module {
			found[m.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
