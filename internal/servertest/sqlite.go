package servertest

import (
	"os"
	"path/filepath"
	"testing"
)

// SQLiteFile is the path of a database file of the test's own, which does not exist
// yet. It has no character that means something in a URI, as the folders of
// repeated subtests have.
func SQLiteFile(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawl-sqlite-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "test.db")
}
