package gormguard

import (
	"sync"

	"github.com/pawl-go/pawl/fencing"
)

// remembered is how many resources a memory knows. One that is forgotten costs
// one statement more when it is used again.
const remembered = 4096

// memory knows which grants this process has raised in one database. It saves
// the raise, never the check: a register that lost its value is found behind, and
// raised again. The nil memory knows nothing.
type memory struct {
	mu     sync.Mutex
	raised map[string]fencing.Grant // by resource
}

func newMemory() *memory { return &memory{raised: map[string]fencing.Grant{}} }

func (m *memory) knows(g fencing.Grant) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raised[g.Resource] == g
}

func (m *memory) learn(g fencing.Grant) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.raised[g.Resource]; !ok && len(m.raised) >= remembered {
		for other := range m.raised { // any
			delete(m.raised, other)
			break
		}
	}
	m.raised[g.Resource] = g
}

func (m *memory) forget(grants []fencing.Grant) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range grants {
		delete(m.raised, g.Resource)
	}
}
