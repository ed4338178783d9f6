package history

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/fencing"
)

// Grant is one hold of a key: asked for at Call, held at Return. A call whose
// outcome is unknown is no grant.
type Grant struct {
	Client       int
	Key          string
	Call, Return int64
	Token        fencing.Token
}

const ruleTokens = "a hold that was granted after another has a greater token"

// Tokens checks the order of the holds of each key.
func Tokens(grants []Grant) error {
	var broken []error
	for key, list := range grouped(grants, func(g Grant) string { return g.Key }) {
		ops := make([]porcupine.Operation, len(list))
		for i, g := range list {
			ops[i] = porcupine.Operation{ClientId: g.Client, Input: g.Token, Call: g.Call, Return: g.Return}
		}
		broken = append(broken, linearize(key, ruleTokens, tokenSource(), ops))
	}
	return errors.Join(broken...)
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
