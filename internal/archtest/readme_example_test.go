package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadme_ShowsExamplesThatRun holds the snippets of README.md against the
// Example functions that they are rendered from; -update renders them.
func TestReadme_ShowsExamplesThatRun(t *testing.T) {
	file := filepath.Join("..", "..", "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	marked := regexp.MustCompile("(?ms)^<!-- example: (\\S+) (\\S+) -->\n```go\n.*?^```$")
	count := 0
	rendered := marked.ReplaceAllStringFunc(string(text), func(block string) string {
		count++
		m := marked.FindStringSubmatch(block)
		return "<!-- example: " + m[1] + " " + m[2] + " -->\n```go\n" + exampleBody(t, m[1], m[2]) + "```"
	})
	if count < 3 {
		t.Errorf("README.md has %d rendered examples, want at least three", count)
	}
	if *update {
		if err := os.WriteFile(file, []byte(rendered), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(rendered, string(text)); diff != "" {
		t.Errorf("README.md differs from the examples; run `make readme` (-want +got):\n%s", diff)
	}
}

// exampleBody is the body of an Example function of a package, without its
// expected output, or a whole function that examples call.
func exampleBody(t *testing.T, pkg, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || f.Name.Name != name:
			case strings.HasPrefix(name, "Example"):
				return dedent(string(source[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]))
			default:
				return string(source[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset]) + "\n"
			}
		}
	}
	t.Fatalf("%s has no %s", pkg, name)
	return ""
}

func dedent(body string) string {
	if i := strings.Index(body, "\t// Output:"); i >= 0 {
		body = body[:i]
	}
	lines := strings.Split(strings.Trim(body, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n\t ") + "\n"
}
