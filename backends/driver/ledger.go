package driver

import (
	"context"
	"time"
)

// State of an entry. The zero value is invalid.
type State uint8

const (
	Fresh   State = iota + 1 // none, or past retention
	Claimed                  // claimed, fn not begun, lease alive; run out, the entry is what it was before that claim
	Running                  // fn began, lease alive
	Dead                     // fn began, lease run out
	Done                     // finished with a result
	Failed                   // finished with a failure to replay
	Unknown                  // ended without saying how
)

// BeginRequest is one attempt to run a request.
type BeginRequest struct {
	Request
	Fingerprint []byte        // empty if the caller gave none; empty agrees only with empty
	OverDead    bool          // claim it also when its run died
	OverUnknown bool          // claim it also when its outcome is unknown
	ClaimOnly   bool          // claim without starting: Start must follow before fn begins
	Keep        time.Duration // forget the entry this long after its lease if its run dies; zero: never
}

// Entry is what Begin found.
type Entry struct {
	State       State
	Claim       *Grant // nil unless this call owns the entry now
	Fingerprint []byte
	Outcome     Outcome       // of Done and Failed
	Left        time.Duration // of Running: until its lease runs out, by the store's clock
}

// Outcome is how a run ended.
type Outcome struct {
	State State  // Done, Failed or Unknown
	Body  []byte // encoded result or failure; nil and empty are different
	Gone  bool   // the body was too large to keep
}

// Ledger keeps one entry per idempotency key.
type Ledger interface {
	Backend
	// Begin reports the entry as found and claims it if it may: when State is Fresh, or Dead or Unknown and r says so,
	// and the fingerprints agree. Look and claim are one atomic step. An entry that is not claimed is not touched.
	Begin(ctx context.Context, r BeginRequest) (Entry, error)
	Start(ctx context.Context, g Grant) error           // claimed -> running, by attempt; ErrLost
	Extend(ctx context.Context, g Grant) (Grant, error) // ErrLost; the result has the new Until
	// Finish ends the claim, unless a later one exists: then ErrLost and no change. keep counts from now; zero is past
	// retention at once, negative never ends.
	Finish(ctx context.Context, g Grant, o Outcome, keep time.Duration) error
	// Abandon says that this claim changed nothing: the entry is as it was before it (absent, or dead, or unknown).
	Abandon(ctx context.Context, g Grant) error
}

// Transactor lets a claim commit with the caller's own rows.
type Transactor interface {
	// Find returns the entry without claiming it, outside any transaction.
	Find(ctx context.Context, key string) (Entry, error)
	// InTx calls run in a transaction and commits if it returns nil. The Ledger and the context given to run belong to that
	// transaction. An error of run rolls back and is returned; an error of the commit itself is an unknown outcome.
	InTx(ctx context.Context, run func(ctx context.Context, l Ledger) error) error
}
