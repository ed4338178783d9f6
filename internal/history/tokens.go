package history

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/fencing"
)

// Grant is one hold of a key: asked for at Call, held at Return. A call whose
// outcome is unknown is no grant.
//
// A hold that was passed on inside a process is as old as the store's grant that
// it is part of: a process that does not know yet that its store has forgotten
// it may pass a hold on to a call that came after a later holder. The fence
// refuses that one.
type Grant struct {
	Client       int
	Key          string
	Call, Return int64
	Token        fencing.Token
}

const (
	ruleTokens = "a hold that was granted after another has a greater token"
	ruleChain  = "a hold that was passed on has a greater token than the one before"
)

// Tokens checks the order of the holds of each key.
func Tokens(grants []Grant) error {
	var broken []error
	for key, list := range grouped(grants, func(g Grant) string { return g.Key }) {
		asked := firstCalls(list)
		ops := make([]porcupine.Operation, len(list))
		chains := make(map[fencing.Token][]porcupine.Operation)
		for i, g := range list {
			ops[i] = porcupine.Operation{ClientId: g.Client, Input: g.Token, Call: g.Call, Return: g.Return}
			chains[chain(g)] = append(chains[chain(g)], ops[i])
			ops[i].Call = asked[chain(g)]
		}
		broken = append(broken, linearize(key, ruleTokens, tokenSource(), ops))
		for _, passed := range chains {
			broken = append(broken, linearize(key, ruleChain, tokenSource(), passed))
		}
	}
	return errors.Join(broken...)
}

// chain is what the tokens of one grant of a store have in common: all but the bits
// of hand-over and fallback.
func chain(g Grant) fencing.Token { return g.Token >> 9 }

// firstCalls is when each chain was asked for.
func firstCalls(list []Grant) map[fencing.Token]int64 {
	first := make(map[fencing.Token]int64)
	for _, g := range list {
		if at, ok := first[chain(g)]; !ok || g.Call < at {
			first[chain(g)] = g.Call
		}
	}
	return first
}

// tokenSource is a source of tokens that grow. Its state is the greatest so far.
func tokenSource() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return fencing.Token(0) },
		Step: func(state, input, _ any) (bool, any) {
			last, token := state.(fencing.Token), input.(fencing.Token)
			return token > last, token
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("grant %d", input) },
		DescribeState:     func(state any) string { return fmt.Sprintf("last %d", state) },
	}
}
