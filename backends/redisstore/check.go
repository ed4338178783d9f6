package redisstore

import (
	"context"
	"github.com/pawl-go/pawl/backends/driver"
)

// Check implements [driver.Checker].
func (s *Store) Check(ctx context.Context) ([]driver.Hazard, error) { return nil, nil }
