package gormguard

import (
	"errors"
	"fmt"
	"math"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// errBehind says that the register does not know the grant yet, though it may:
// it has to be raised.
var errBehind = errors.New("gormguard: the register is behind")

// generationShift is where a token's generation begins. The SQL of the dialects
// compares it too.
const generationShift = 57

// register is a row of pawl_fences.
type register struct {
	resource, origin string
	token            fencing.Token
}

// judge compares g with its register: nil if g is the newest holder, errBehind
// if the register must be raised first, else why g is refused. A register
// without an origin was made by no lock store (LockRow, or a fallback), and any
// origin adopts it.
func judge(r register, g fencing.Grant) error {
	switch {
	case r.origin != g.Origin && r.origin != "":
		if g.Token>>generationShift > r.token>>generationShift {
			return errBehind
		}
		return fmt.Errorf("%w: %q has a token of %q, this hold comes from %q: raise the generation",
			fencing.ErrForeign, g.Resource, r.origin, g.Origin)
	case r.token > g.Token:
		return fmt.Errorf("%w: %q has token %d, this hold has %d", fencing.ErrStale, g.Resource, r.token, g.Token)
	case r.token < g.Token, r.origin != g.Origin:
		return errBehind
	}
	return nil
}

// judgeAll judges every grant by the registers found, in one order. What
// refuses for good goes before errBehind.
func judgeAll(found map[string]register, grants []fencing.Grant) error {
	var behind error
	for _, g := range grants {
		r, ok := found[g.Resource]
		if !ok {
			behind = errBehind
			continue
		}
		err := judge(r, g)
		if errors.Is(err, errBehind) {
			behind = err
		} else if err != nil {
			return err
		}
	}
	return behind
}

// valid refuses tokens that no store makes: BIGINT would order them otherwise
// than Go.
func valid(grants []fencing.Grant) error {
	for _, g := range grants {
		if g.Token == 0 || g.Token > math.MaxInt64 || g.Resource == "" {
			return fmt.Errorf("%w: token %d of %q, which no store makes", guard.ErrInvalid, g.Token, g.Resource)
		}
	}
	return nil
}
