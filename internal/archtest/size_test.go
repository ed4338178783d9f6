package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxFile     = 250 // lines of a file that is not a test
	maxFunction = 40  // lines of a function in one, braces included
	wishedStore = 400 // lines of a whole store: a wish, reported
)

// source is one parsed file of the repository.
type source struct {
	path  string // in the repository
	files *token.FileSet
	ast   *ast.File
	lines int
}

// sources are all Go files, tests and those for other systems included.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata"):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		s, err := parse(path)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func parse(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	s := source{path: filepath.ToSlash(strings.TrimPrefix(path, "../../")), files: token.NewFileSet()}
	s.lines = strings.Count(string(text), "\n")
	s.ast, err = parser.ParseFile(s.files, path, text, parser.SkipObjectResolution)
	return s, err
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) length(n ast.Node) int {
	return s.files.Position(n.End()).Line - s.files.Position(n.Pos()).Line + 1
}

func TestSize_OfFilesAndFunctions(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		if s.lines > maxFile {
			t.Errorf("%s has %d lines, want at most %d", s.path, s.lines, maxFile)
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			f.Doc = nil
			if got := s.length(f); got > maxFunction {
				t.Errorf("%s: %s has %d lines, want at most %d", s.path, f.Name.Name, got, maxFunction)
			}
		}
	}
}

// TestSize_OfStores reports; what a store needs is not known before it is written.
func TestSize_OfStores(t *testing.T) {
	totals := make(map[string]int)
	for _, s := range sources(t) {
		if dir := filepath.Dir(s.path); strings.HasPrefix(dir, "backends/") && strings.HasSuffix(dir, "store") && !s.isTest() {
			totals[dir] += s.lines
		}
	}
	if len(totals) == 0 {
		t.Error("got no stores")
	}
	for dir, lines := range totals {
		t.Logf("%s: %d lines (wished for: at most %d)", dir, lines, wishedStore)
	}
}

// TestSkips_AreServertests: what skips goes unseen, so one place decides it, and it
// fails where CI says that everything must run.
func TestSkips_AreServertests(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "internal/servertest/") || !imports(s.ast, "testing") {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if ok && (call.Sel.Name == "Skip" || call.Sel.Name == "Skipf" || call.Sel.Name == "SkipNow" || call.Sel.Name == "Short") {
				t.Errorf("%s: %s: only internal/servertest skips", s.files.Position(call.Pos()), call.Sel.Name)
			}
			return true
		})
	}
}

func imports(f *ast.File, path string) bool {
	for _, i := range f.Imports {
		if i.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}
