// Package history decides whether what the clients of a lock and of a fenced
// resource saw could have happened under the promises that Pawl makes. There is
// no clock in the promises, so there is none in the verdict: only which call
// returned before which other was made.
//
// Two models, checked for linearizability (Herlihy and Wing, 1990) with
// Porcupine:
//
//   - [Tokens]: whoever is granted a key after another has a greater token.
//   - [Register]: a resource refuses a token once a greater one has come, by read
//     or by write, and an accepted write replaces what its writer has read.
//
// Times are of one clock for all clients, such as the monotonic clock of a
// machine. What a client does not know (an error that is no verdict) is not taken
// for a failure.
package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// limit bounds the search for an order. A thousand operations take less than a
// second.
const limit = time.Minute

// ViolationError says which promise a history breaks.
type ViolationError struct {
	Of   string // the key or resource
	Rule string // what was promised

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// Error is one line.
func (v *ViolationError) Error() string { return fmt.Sprintf("history of %q: %s", v.Of, v.Rule) }

// Draw writes a page for a browser that shows how far an order of the operations
// was found.
func (v *ViolationError) Draw(path string) error {
	return porcupine.VisualizePath(v.model, v.info, path)
}

// linearize looks for an order of the operations that the model allows and that
// agrees with time. rule names the promise if there is none.
func linearize(of, rule string, m porcupine.Model, ops []porcupine.Operation) error {
	found, info := porcupine.CheckOperationsVerbose(m, ops, limit)
	switch found {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("history of %q: no verdict within %v on %d operations", of, limit, len(ops))
	default:
		return &ViolationError{Of: of, Rule: rule, model: m, info: info}
	}
}

// grouped returns list by what of says, each group in the order of list.
func grouped[T any](list []T, of func(T) string) map[string][]T {
	groups := make(map[string][]T)
	for _, v := range list {
		groups[of(v)] = append(groups[of(v)], v)
	}
	return groups
}
