package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/backends/driver"
)

// Plan is what New decided. Its String is the line that New logs.
type Plan struct {
	Profile, Lock, Ledger, Limiter string // names of stores; empty: not used
	Queued                         bool   // waiters are woken by the store; false: guard polls
}

// String is one line with a field for each role in use.
func (p Plan) String() string {
	var b strings.Builder
	b.WriteString("profile " + p.Profile)
	if p.Lock != "" {
		how := "polled"
		if p.Queued {
			how = "queued"
		}
		fmt.Fprintf(&b, ", lock on %s (%s)", p.Lock, how)
	}
	if p.Ledger != "" {
		b.WriteString(", ledger on " + p.Ledger)
	}
	if p.Limiter != "" {
		b.WriteString(", limiter on " + p.Limiter)
	}
	return b.String()
}

// role finds the store that serves one role of a profile: the first consistency
// of want that a store with capability B has; among equals the order given to
// On.
func role[B driver.Backend](name, profile string, want []driver.Consistency, stores []driver.Backend, singleProcess bool) (B, error) {
	var none B
	if len(want) == 0 {
		return none, nil
	}
	accepted := make([]driver.Consistency, 0, len(want)+1)
	for _, c := range want {
		if c != driver.Local {
			accepted = append(accepted, c)
		}
	}
	if singleProcess {
		accepted = append(accepted, driver.Local)
	}
	for _, c := range accepted {
		for _, s := range stores {
			if b, ok := s.(B); ok && s.Traits().Consistency == c {
				return b, nil
			}
		}
	}
	capable := slices.ContainsFunc(stores, func(s driver.Backend) bool { _, ok := s.(B); return ok })
	if !capable && len(stores) > 0 {
		return none, invalid("profile %q needs a %s, which no given store keeps (%s): add one that does, or set Profile.%s to nil to do without",
			profile, strings.ToLower(name), names(stores), name)
	}
	return none, refuse(strings.ToLower(name), profile, accepted, stores)
}

func names(stores []driver.Backend) string {
	given := make([]string, len(stores))
	for i, s := range stores {
		t := s.Traits()
		given[i] = t.Name + " (" + t.Consistency.String() + ")"
	}
	if len(given) == 0 {
		return "none"
	}
	return strings.Join(given, ", ")
}

// refuse says why no store serves a role, and what would do.
func refuse(role, profile string, accepted []driver.Consistency, stores []driver.Backend) error {
	if len(accepted) == 0 {
		return invalid("profile %q accepts only a local %s: that serves with SingleProcess", profile, role)
	}
	kinds := make([]string, len(accepted))
	for i, c := range accepted {
		kinds[i] = c.String() + " (" + examples(c) + ")"
	}
	has := func(c driver.Consistency) bool {
		return slices.ContainsFunc(stores, func(s driver.Backend) bool { return s.Traits().Consistency == c })
	}
	hint := ""
	switch {
	case slices.Contains(accepted, driver.Local):
	case has(driver.Local):
		hint = "; a local store serves only with SingleProcess"
	case has(driver.Async):
		hint = "; if a second grant after a failover does no harm, add driver.Async to the profile's list"
	}
	return invalid("profile %q needs a %s of consistency %s; given: %s%s", profile, role, strings.Join(kinds, " or "), names(stores), hint)
}

func examples(c driver.Consistency) string {
	switch c {
	case driver.Async:
		return "redisstore"
	case driver.Primary:
		return "gormstore"
	case driver.Consensus:
		return "etcdstore, zkstore"
	default:
		return "memstore"
	}
}

// checkStore refuses a value that cannot serve or cannot be told from another.
func checkStore(i int, s driver.Backend) error {
	if s == nil {
		return invalid("On: store %d is nil", i+1)
	}
	v := reflect.ValueOf(s)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return invalid("On: store %d is a nil %T: was its constructor's error ignored?", i+1, s)
	}
	if !v.Comparable() {
		return invalid("On: store %d, a %T, cannot be compared: pass a pointer", i+1, s)
	}
	t := s.Traits()
	if t.Name == "" || t.Consistency < driver.Local || t.Consistency > driver.Consensus {
		return invalid("On: store %d, a %T, has invalid Traits (Name %q, Consistency %v): was it made by its New?", i+1, s, t.Name, t.Consistency)
	}
	return nil
}
