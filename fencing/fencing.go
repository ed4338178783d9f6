// Package fencing carries proof of a hold to the place where it is checked.
// Standard library only.
//
// A lease cannot keep a paused holder from acting late; only the resource can,
// by refusing a token smaller than one it has seen, in the same atomic step as
// the access and from the first read on. See Kleppmann, "How to do distributed
// locking" (2016), and Burrows, "The Chubby lock service" (OSDI 2006), section
// 2.4, on sequencers.
package fencing

import (
	"context"
	"errors"
	"slices"
	"strings"
)

var (
	// ErrStale reports that a greater token was admitted before.
	ErrStale = errors.New("fencing: a later holder has come")
	// ErrForeign reports a token of another origin. The orders of two stores do not
	// compare: raise the generation when a key space moves.
	ErrForeign = errors.New("fencing: token of another origin")
)

// Grant says that the bearer holds Resource since Token.
type Grant struct {
	Resource string // namespace and key, as guard built it
	Token    Token
	Origin   string // the store that made it: tokens of two stores do not compare
}

// Gate is a resource that compares tokens in the same atomic step as the
// access.
type Gate interface {
	// Admit raises the gate to g or fails with ErrStale. It must be safe for concurrent use.
	Admit(ctx context.Context, g Grant) error
}

type grantsKey struct{}

// carrier is the context that NewContext returns. One grant, the usual case,
// costs one allocation.
type carrier struct {
	context.Context //nolint:containedctx // it is a context
	grants          []Grant
	one             [1]Grant
}

func (c *carrier) Value(key any) any {
	if key == (grantsKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// NewContext returns ctx with grants added to those it carries; of one
// resource the greatest token counts, of two origins the one added last.
func NewContext(ctx context.Context, grants ...Grant) context.Context {
	if len(grants) == 0 {
		return ctx
	}
	c := &carrier{Context: ctx}
	held := carried(ctx)
	if len(held) == 0 && len(grants) == 1 {
		c.one[0] = grants[0]
		c.grants = c.one[:]
		return c
	}
	c.grants = merge(held, grants)
	return c
}

// Grants returns what ctx carries, sorted by resource, so that gates are
// entered in one order everywhere. The slice is the caller's.
func Grants(ctx context.Context) []Grant {
	return slices.Clone(carried(ctx))
}

// Admit passes every grant of ctx through gate, in the order of Grants.
// A ctx without grants passes.
func Admit(ctx context.Context, gate Gate) error {
	for _, g := range carried(ctx) {
		if err := gate.Admit(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

func carried(ctx context.Context) []Grant {
	if c, ok := ctx.Value(grantsKey{}).(*carrier); ok {
		return c.grants
	}
	return nil
}

// merge keeps one grant a resource, sorted. Tokens of two origins do not
// compare, so there the grant that was added last counts.
func merge(held, added []Grant) []Grant {
	merged := slices.Clone(held)
	for _, g := range added {
		i, found := slices.BinarySearchFunc(merged, g, byResource)
		switch {
		case !found:
			merged = slices.Insert(merged, i, g)
		case g.Origin != merged[i].Origin || g.Token > merged[i].Token:
			merged[i] = g
		}
	}
	return merged
}

func byResource(a, b Grant) int { return strings.Compare(a.Resource, b.Resource) }
