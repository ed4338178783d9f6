// Package dberr reads the errors of databases without importing their drivers,
// so that a user of one links no other.
package dberr

import (
	"fmt"
	"strings"
)

// Hint adds to an error about a missing table of Pawl what to do. The databases
// have no code in common for it, but all name the table.
func Hint(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if !strings.Contains(text, "pawl_") {
		return err
	}
	for _, missing := range []string{"no such table", "does not exist", "doesn't exist"} { // SQLite, PostgreSQL, MySQL
		if strings.Contains(text, missing) {
			return fmt.Errorf("run gormstore.Migrate on this database: %w", err)
		}
	}
	return err
}
