package dberr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-go/pawl/internal/dberr"
)

func TestField_FindsWhatIsWrappedOrJoined(t *testing.T) {
	deadlock := &mysql.MySQLError{Number: 1213, SQLState: [5]byte{'4', '0', '0', '0', '1'}}
	other := errors.New("close")
	for _, err := range []error{
		deadlock,
		fmt.Errorf("a: %w", deadlock),
		errors.Join(other, deadlock),
		fmt.Errorf("b: %w", errors.Join(fmt.Errorf("c: %w", other), fmt.Errorf("d: %w", deadlock))),
	} {
		if got := dberr.Int(err, "Number"); got != 1213 {
			t.Errorf("%v: got number %d, want 1213", err, got)
		}
		if got := dberr.Field(err, "SQLState"); !got.IsValid() || got.Len() != 5 {
			t.Errorf("%v: got no state", err)
		}
	}
	for _, err := range []error{nil, other, errors.Join(other, other)} {
		if got := dberr.Int(err, "Number"); got != 0 {
			t.Errorf("%v: got number %d, want none", err, got)
		}
	}
}
