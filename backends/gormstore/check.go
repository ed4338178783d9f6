package gormstore

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/backends/driver"
)

// rule is a hazard if bad.
type rule struct {
	bad    bool
	hazard driver.Hazard
}

func grave(bad bool, setting, breaks, fix string) rule {
	return rule{bad, driver.Hazard{Setting: setting, Breaks: breaks, Fix: fix, Grave: true}}
}

func warn(bad bool, setting, breaks, fix string) rule {
	return rule{bad, driver.Hazard{Setting: setting, Breaks: breaks, Fix: fix}}
}

func missingTable(missing bool) rule {
	return grave(missing, "table pawl_locks is missing", "every lock", "run gormstore.Migrate")
}

// Check implements [driver.Checker].
func (s *Store) Check(ctx context.Context) ([]driver.Hazard, error) {
	rules, err := s.dialect.check(ctx, s.pool)
	var found []driver.Hazard
	for _, r := range rules {
		if r.bad {
			r.hazard.Store = s.dialect.name
			found = append(found, r.hazard)
		}
	}
	if err != nil {
		err = fmt.Errorf("gormstore: check: %w", err)
	}
	return found, err
}
