package guard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// Every error that guard makes Is exactly one of these and As *Error. fn's own
// error comes back as it is.
var (
	ErrBusy           = driver.ErrBusy // another holds the key: at once, or after Wait
	ErrLost           = driver.ErrLost // the lease or claim ended while fn ran
	ErrInProgress     = errors.New("pawl: the same request is running")
	ErrMismatch       = errors.New("pawl: key reused for another request")
	ErrOutcomeUnknown = errors.New("pawl: an earlier run ended without an outcome")
	ErrNotRecorded    = errors.New("pawl: fn succeeded, its outcome was not recorded")
	ErrLimited        = errors.New("pawl: over the limit")
	ErrUnavailable    = errors.New("pawl: the store did not answer") // also: ctx ended before it did; joined with ctx's error
	ErrInvalid        = errors.New("pawl: invalid use")
)

// Error tells what failed where. It unwraps to a sentinel, and to the store's
// or the context's own error.
type Error struct {
	Op, Profile, Key, Store string        // Key is hashed for idempotency keys
	RetryAfter              time.Duration // zero: unknown
	Err                     error
}

// Error is one line: what was called on which key, where, and why it failed.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("pawl: ")
	b.WriteString(e.Op)
	if e.Key != "" {
		fmt.Fprintf(&b, " %q", e.Key)
	}
	switch {
	case e.Profile != "" && e.Store != "":
		fmt.Fprintf(&b, " (%s on %s)", e.Profile, e.Store)
	case e.Profile != "":
		fmt.Fprintf(&b, " (%s)", e.Profile)
	}
	b.WriteString(": ")
	b.WriteString(strings.TrimPrefix(e.Err.Error(), "pawl: "))
	return b.String()
}

// Unwrap returns the sentinel, joined with the error of the store or context.
func (e *Error) Unwrap() error { return e.Err }

var errGuardClosed = invalid("the guard is closed")

// because joins a sentinel and what caused it in one line. A nil cause adds
// nothing.
func because(sentinel, cause error) error {
	if cause == nil {
		return sentinel
	}
	return fmt.Errorf("%w: %w", sentinel, cause)
}

// unanswered is ErrUnavailable because of what a store said instead of a
// verdict. ErrLost is none on an Acquire (a copy of it that came after its own
// release), and the error must not be two sentinels.
func unanswered(err error) error {
	if errors.Is(err, driver.ErrLost) {
		err = errors.New(err.Error())
	}
	return because(ErrUnavailable, err)
}

// invalid is ErrInvalid with the field and the fix.
func invalid(format string, args ...any) error {
	return because(ErrInvalid, fmt.Errorf(format, args...))
}
