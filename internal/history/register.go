package history

import (
	"errors"
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/fencing"
)

// Access is one fenced access to a resource that holds a number. Each write
// writes a number of its own, so that it can be recognized.
type Access struct {
	Client       int
	Resource     string
	Call, Return int64
	Token        fencing.Token
	Write        bool
	Saw          int64 // read: the value; write: what its writer had read before
	Wrote        int64 // write: the value
	Outcome      Outcome
}

// Outcome is what the client was told.
type Outcome uint8

const (
	Unknown Outcome = iota // neither: it may have happened, also later
	OK
	Stale // refused, since a later holder has come
)

const ruleRegister = "accesses are accepted in the order of their tokens, stale is final, and a write replaces what its writer has read"

// Register checks the accesses to each resource, which holds first to begin with.
// The last access must be an accepted read after all others have returned: it
// decides what became of writes that nobody knows of.
func Register(first int64, accesses []Access) error {
	var broken []error
	for resource, list := range grouped(accesses, func(a Access) string { return a.Resource }) {
		if err := checkLast(list); err != nil {
			broken = append(broken, fmt.Errorf("history of %q: %w", resource, err))
			continue
		}
		broken = append(broken, linearize(resource, ruleRegister, fencedRegister(first), operations(list)))
	}
	return errors.Join(broken...)
}

func checkLast(list []Access) error {
	last := list[len(list)-1]
	if last.Write || last.Outcome != OK {
		return errors.New("the last access is not an accepted read")
	}
	for _, a := range list[:len(list)-1] {
		if a.Outcome != Unknown && a.Return >= last.Call {
			return errors.New("the last read began before all others had returned")
		}
	}
	return nil
}

// raise is the first half of an access: the token has been admitted. That happens
// even when the access fails then.
type raise struct{ token fencing.Token }

// operations are the steps of the model. Each access that failed may have raised
// the register; a write that nobody knows of has happened if its value was seen.
func operations(list []Access) []porcupine.Operation {
	seen := make(map[int64]int64) // value: the earliest time at which a client knew it
	for _, a := range list {
		if a.Write || a.Outcome == OK {
			learn(seen, a)
		}
	}
	var ops []porcupine.Operation
	for _, a := range list {
		if at, ok := seen[a.Wrote]; ok && a.Write && a.Outcome == Unknown {
			a.Outcome, a.Return = OK, max(at, a.Call)
		}
		op := porcupine.Operation{ClientId: a.Client, Input: a, Call: a.Call, Return: a.Return}
		if a.Outcome == Unknown {
			op.Return = math.MaxInt64
		}
		if a.Outcome != OK {
			raised := op
			raised.Input = raise{a.Token}
			ops = append(ops, raised)
		}
		if a.Outcome != Unknown {
			ops = append(ops, op)
		}
	}
	return ops
}

// learn notes when a client knew the value that it saw: at the end of a read, and
// in any case when it wrote because of it.
func learn(seen map[int64]int64, a Access) {
	at := a.Return
	if a.Write {
		at = a.Call
	}
	if known, ok := seen[a.Saw]; !ok || at < known {
		seen[a.Saw] = at
	}
}

// cell is the state of a resource: the register of its fence and its value.
type cell struct {
	register fencing.Token
	value    int64
}

// fencedRegister is a resource that is fenced from the first read on.
func fencedRegister(first int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{cell{value: first}} },
		Step: func(state, input, _ any) []any {
			now := state.(cell)
			if r, ok := input.(raise); ok {
				return []any{now, cell{max(now.register, r.token), now.value}}
			}
			return accessed(now, input.(Access))
		},
		DescribeOperation: func(input, _ any) string { return describe(input) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}

// accessed is the state after a, none if a cannot have had its outcome now.
func accessed(now cell, a Access) []any {
	switch {
	case a.Outcome == Stale && a.Token < now.register:
		return []any{now}
	case a.Outcome == Stale || a.Token < now.register || a.Saw != now.value:
		return nil
	case a.Write:
		return []any{cell{a.Token, a.Wrote}}
	}
	return []any{cell{a.Token, now.value}}
}

func describe(input any) string {
	a, ok := input.(Access)
	switch {
	case !ok:
		return fmt.Sprintf("raise %d", input.(raise).token)
	case a.Outcome == Stale:
		return fmt.Sprintf("%d is stale", a.Token)
	case a.Write:
		return fmt.Sprintf("%d saw %d, wrote %d", a.Token, a.Saw, a.Wrote)
	}
	return fmt.Sprintf("%d reads %d", a.Token, a.Saw)
}
