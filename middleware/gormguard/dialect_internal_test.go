package gormguard

import (
	"errors"
	"fmt"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
)

// What comes after a deadlock would commit by itself, unfenced: it must be seen
// also in an error that is joined with that of closing the rows.
func TestMySQL_SeesADeadlockInWhateverItIsWrapped(t *testing.T) {
	deadlock := &gomysql.MySQLError{Number: 1213, SQLState: [5]byte{'4', '0', '0', '0', '1'}}
	duplicate := &gomysql.MySQLError{Number: 1062, SQLState: [5]byte{'2', '3', '0', '0', '0'}}
	for _, wrap := range []func(error) error{
		func(err error) error { return err },
		func(err error) error { return fmt.Errorf("check: %w", err) },
		func(err error) error { return errors.Join(errors.New("close"), err) },
	} {
		if err := wrap(deadlock); !(mysql{}).ends(err) || !(mysql{}).refused(err) {
			t.Errorf("%v: a deadlock ends the transaction", err)
		}
		if err := wrap(duplicate); (mysql{}).ends(err) {
			t.Errorf("%v: a duplicate ends only its statement", err)
		}
	}
}
