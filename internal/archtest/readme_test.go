package archtest_test

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme_ProgramsCompile builds each Go block of README.md that is a program;
// the others must at least be Go.
func TestReadme_ProgramsCompile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("README.md shows no Go")
	}
	for i, block := range blocks {
		t.Run(fmt.Sprintf("Block%d", i+1), func(t *testing.T) {
			if strings.Contains(string(block[1]), "package main") {
				compile(t, block[1])
				return
			}
			if _, err := format.Source(block[1]); err != nil {
				t.Errorf("not Go: %v\n%s", err, block[1])
			}
		})
	}
}

// compile builds a program outside the repository with the module's versions.
func compile(t *testing.T, program []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, program, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", file)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, program)
	}
}
