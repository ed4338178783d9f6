package archtest_test

import (
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPI_OfEachPackage shows a change of the exported API as a diff in review.
// Comments are left out: they may change freely.
func TestAPI_OfEachPackage(t *testing.T) {
	g := packages(t)
	want := goldenFiles(t, "api")
	for _, name := range g.public() {
		want.compare(t, name, exported(t, g[module+"/"+name]))
	}
	want.rest(t)
}

// exported prints the declarations that a user sees, in the order of go doc.
func exported(t *testing.T, p pkg) string {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	d, err := doc.NewFromFiles(files, parsed, p.ImportPath)
	if err != nil {
		t.Fatal(err)
	}
	w := &apiWriter{t: t, files: files}
	w.text.WriteString("package " + p.Name + "\n")
	w.values(d.Consts)
	w.values(d.Vars)
	w.funcs(d.Funcs)
	for _, typ := range d.Types {
		w.decl(typ.Decl)
		w.values(typ.Consts)
		w.values(typ.Vars)
		w.funcs(typ.Funcs)
		w.funcs(typ.Methods)
	}
	return w.text.String()
}

type apiWriter struct {
	t     *testing.T
	files *token.FileSet
	text  strings.Builder
}

func (w *apiWriter) values(values []*doc.Value) {
	w.t.Helper()
	for _, v := range values {
		w.decl(v.Decl)
	}
}

func (w *apiWriter) funcs(funcs []*doc.Func) {
	w.t.Helper()
	for _, f := range funcs {
		f.Decl.Body = nil
		w.decl(f.Decl)
	}
}

func (w *apiWriter) decl(d ast.Decl) {
	w.t.Helper()
	w.text.WriteString("\n")
	if err := format.Node(&w.text, w.files, d); err != nil {
		w.t.Fatal(err)
	}
	w.text.WriteString("\n")
}
