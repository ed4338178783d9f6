package guard

import "fmt"

// Recovery says what the next request with the key meets.
type Recovery uint8

const (
	Rerun Recovery = iota + 1 // fn runs again
	Hold                      // Resolve is asked, else ErrOutcomeUnknown
)

func (r Recovery) valid() bool { return r == Rerun || r == Hold }

// String is rerun, hold, or a number for an invalid value.
func (r Recovery) String() string {
	switch r {
	case Rerun:
		return "rerun"
	case Hold:
		return "hold"
	}
	return fmt.Sprintf("recovery(%d)", uint8(r))
}

// MarshalText implements [encoding.TextMarshaler]: zero, of a role that is not
// used, is empty; another invalid value is an error.
func (r Recovery) MarshalText() ([]byte, error) {
	if r == 0 {
		return []byte{}, nil
	}
	if !r.valid() {
		return nil, fmt.Errorf("guard: no such recovery: %d", uint8(r))
	}
	return []byte(r.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] for rerun and hold.
func (r *Recovery) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = 0
		return nil
	}
	for _, v := range []Recovery{Rerun, Hold} {
		if v.String() == string(b) {
			*r = v
			return nil
		}
	}
	return fmt.Errorf("guard: no such recovery: %q (use rerun or hold)", b)
}

// Outage says what a call does when a role's store cannot answer.
type Outage uint8

const (
	Refuse  Outage = iota + 1 // ErrUnavailable
	Degrade                   // lock: fall back to idempotency (see ClaimSuffices); ledger: run unrecorded; limiter: limit in this process
)

func (o Outage) valid() bool { return o == Refuse || o == Degrade }

// String is refuse, degrade, or a number for an invalid value.
func (o Outage) String() string {
	switch o {
	case Refuse:
		return "refuse"
	case Degrade:
		return "degrade"
	}
	return fmt.Sprintf("outage(%d)", uint8(o))
}

// MarshalText implements [encoding.TextMarshaler]: zero, of a role that is not
// used, is empty; another invalid value is an error.
func (o Outage) MarshalText() ([]byte, error) {
	if o == 0 {
		return []byte{}, nil
	}
	if !o.valid() {
		return nil, fmt.Errorf("guard: no such outage: %d", uint8(o))
	}
	return []byte(o.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] for refuse and degrade.
func (o *Outage) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*o = 0
		return nil
	}
	for _, v := range []Outage{Refuse, Degrade} {
		if v.String() == string(b) {
			*o = v
			return nil
		}
	}
	return fmt.Errorf("guard: no such outage: %q (use refuse or degrade)", b)
}
