package servertest

import (
	"path/filepath"
	"testing"
)

// SQLiteFile is the path of a database file of the test's own, which does not exist
// yet.
func SQLiteFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "test.db")
}
