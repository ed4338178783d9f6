package driver

import "fmt"

// Consistency is what a grant is worth when a server fails. The zero value is
// invalid.
type Consistency uint8

const (
	Local     Consistency = iota + 1 // one process
	Async                            // can grant twice after a failover
	Primary                          // one primary, synchronous commit
	Consensus                        // a quorum decided
)

var consistencies = [...]string{Local: "local", Async: "async", Primary: "primary", Consensus: "consensus"} //nolint:gochecknoglobals // a constant table

// String is the name in lower case, or a number for an invalid value.
func (c Consistency) String() string {
	if c >= Local && int(c) < len(consistencies) {
		return consistencies[c]
	}
	return fmt.Sprintf("consistency(%d)", uint8(c))
}

// MarshalText implements [encoding.TextMarshaler]; an invalid value is an error.
func (c Consistency) MarshalText() ([]byte, error) {
	if c < Local || int(c) >= len(consistencies) {
		return nil, fmt.Errorf("driver: no such consistency: %d", uint8(c))
	}
	return []byte(consistencies[c]), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] for local, async, primary
// and consensus.
func (c *Consistency) UnmarshalText(b []byte) error {
	for v := Local; int(v) < len(consistencies); v++ {
		if consistencies[v] == string(b) {
			*c = v
			return nil
		}
	}
	return fmt.Errorf("driver: no such consistency: %q (use local, async, primary or consensus)", b)
}
