package guard

import (
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// Profile is what a scenario needs: plain data, to copy, change, load from
// configuration. New validates it.
type Profile struct {
	Name string // label of metrics and errors

	// Roles: the consistencies that may serve it, best first; among equals the order given to On. Nil: role not used.
	Lock, Ledger, Limiter []driver.Consistency

	TTL       time.Duration // of a lease between renewals
	Wait      time.Duration // for a lock or a running duplicate; zero: do not wait
	MaxHold   time.Duration // a hold is given up after this long; zero: never
	Handovers int           // local hand-overs of one store grant; zero: 64; negative: none; at most 250
	Instances int           // processes that share a limit, for the limiter's outage; zero: 1
	Retention time.Duration // of a finished entry

	OnError, OnDeath                        Recovery // fn failed without a mark; the run died
	LockOutage, LedgerOutage, LimiterOutage Outage   // the store cannot answer
}

// RateLimit counts calls; it locks and records nothing. It needs a store that is
// a driver.Limiter.
func RateLimit() Profile {
	return Profile{
		Name:          "rate-limit",
		Limiter:       anyServer(),
		LimiterOutage: Degrade,
	}
}

// DuplicateSubmit collapses the double click and the client's retry. It may run
// again after an error, so a store that can lose a moment's writes serves it.
func DuplicateSubmit() Profile {
	return Profile{
		Name:          "duplicate-submit",
		Lock:          anyServer(),
		Ledger:        anyServer(),
		Limiter:       anyServer(),
		TTL:           10 * time.Second,
		MaxHold:       time.Minute,
		Retention:     24 * time.Hour,
		OnError:       Rerun,
		OnDeath:       Rerun,
		LockOutage:    Degrade,
		LedgerOutage:  Refuse,
		LimiterOutage: Degrade,
	}
}

// Stock guards a count that must not go below zero.
func Stock() Profile {
	return Profile{
		Name:         "stock",
		Lock:         []driver.Consistency{driver.Consensus, driver.Primary},
		Ledger:       []driver.Consistency{driver.Primary, driver.Consensus},
		TTL:          10 * time.Second,
		Wait:         5 * time.Second,
		MaxHold:      time.Minute,
		Retention:    72 * time.Hour,
		OnError:      Hold,
		OnDeath:      Hold,
		LockOutage:   Degrade,
		LedgerOutage: Refuse,
	}
}

// Payment guards money: it is slower to give up than [Stock] and remembers
// longer.
func Payment() Profile {
	p := Stock()
	p.Name = "payment"
	p.TTL = 30 * time.Second
	p.MaxHold = 5 * time.Minute
	p.Retention = 30 * 24 * time.Hour
	return p
}

// Leadership runs a job on one process.
func Leadership() Profile {
	return Profile{
		Name:       "leadership",
		Lock:       []driver.Consistency{driver.Consensus, driver.Primary},
		TTL:        10 * time.Second,
		LockOutage: Refuse,
	}
}

// ConfigChange lets one operator change one thing at a time.
func ConfigChange() Profile {
	p := Leadership()
	p.Name = "config-change"
	p.Wait = 30 * time.Second
	p.MaxHold = 10 * time.Minute
	return p
}

func anyServer() []driver.Consistency {
	return []driver.Consistency{driver.Async, driver.Primary, driver.Consensus}
}

const (
	defaultHandovers = 64
	maxHandovers     = 250 // the token has room for 255
)

// validate checks the values that need no store.
func (p Profile) validate() error {
	switch {
	case p.Name == "":
		return invalid("Profile.Name is empty: it labels errors and metrics")
	case len(p.Lock)+len(p.Ledger)+len(p.Limiter) == 0:
		return invalid("Profile %q uses no role: set Lock, Ledger or Limiter", p.Name)
	case p.Handovers > maxHandovers:
		return invalid("Profile.Handovers is %d: at most %d, negative for none", p.Handovers, maxHandovers)
	case p.Instances < 0:
		return invalid("Profile.Instances is %d: use the number of processes, or zero for one", p.Instances)
	}
	for role, list := range map[string][]driver.Consistency{"Lock": p.Lock, "Ledger": p.Ledger, "Limiter": p.Limiter} {
		for _, c := range list {
			if c < driver.Local || c > driver.Consensus {
				return invalid("Profile.%s has no such consistency: %v", role, c)
			}
		}
	}
	if err := p.validateLock(); err != nil {
		return err
	}
	if err := p.validateLedger(); err != nil {
		return err
	}
	if len(p.Limiter) > 0 && !p.LimiterOutage.valid() {
		return invalid("Profile.LimiterOutage is %v: use Refuse or Degrade", p.LimiterOutage)
	}
	return nil
}

func (p Profile) validateLock() error {
	if len(p.Lock) == 0 {
		return nil
	}
	switch {
	case p.TTL <= 0:
		return invalid("Profile.TTL is %v: a lease needs a positive time between renewals, such as 10s", p.TTL)
	case p.Wait < 0:
		return invalid("Profile.Wait is %v: use zero not to wait", p.Wait)
	case p.MaxHold < 0:
		return invalid("Profile.MaxHold is %v: use zero for no limit", p.MaxHold)
	case !p.LockOutage.valid():
		return invalid("Profile.LockOutage is %v: use Refuse or Degrade", p.LockOutage)
	}
	return nil
}

func (p Profile) validateLedger() error {
	if len(p.Ledger) == 0 {
		return nil
	}
	switch {
	case p.TTL <= 0:
		return invalid("Profile.TTL is %v: a claim needs a positive time between renewals, such as 10s", p.TTL)
	case p.Wait < 0:
		return invalid("Profile.Wait is %v: use zero not to wait", p.Wait)
	case p.Retention < p.TTL:
		return invalid("Profile.Retention is %v: an entry must outlive its lease (TTL %v)", p.Retention, p.TTL)
	case !p.OnError.valid():
		return invalid("Profile.OnError is %v: use Rerun or Hold", p.OnError)
	case !p.OnDeath.valid():
		return invalid("Profile.OnDeath is %v: use Rerun or Hold", p.OnDeath)
	case !p.LedgerOutage.valid():
		return invalid("Profile.LedgerOutage is %v: use Refuse or Degrade", p.LedgerOutage)
	case p.LedgerOutage == Degrade && (p.OnError == Hold || p.OnDeath == Hold):
		return invalid("Profile.LedgerOutage Degrade runs unrecorded, which a Hold forbids: use Refuse")
	}
	return nil
}
