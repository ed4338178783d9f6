package dberr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/dberr"
)

func TestHint_NamesMigrate(t *testing.T) {
	for text, want := range map[string]bool{
		"SQL logic error: no such table: pawl_locks (1)":                true,
		`ERROR: relation "pawl_fences" does not exist (SQLSTATE 42P01)`: true,
		"Error 1146 (42S02): Table 'shop.pawl_locks' doesn't exist":     true,
		"no such table: items":                          false,
		"UNIQUE constraint failed: pawl_locks.lock_key": false,
	} {
		err := errors.New(text)
		got := dberr.Hint(err)
		if hinted := strings.Contains(got.Error(), "gormstore.Migrate"); hinted != want || !errors.Is(got, err) {
			t.Errorf("%s: got %v", text, got)
		}
	}
	if dberr.Hint(nil) != nil {
		t.Error("got an error from nil")
	}
}
