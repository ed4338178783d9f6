package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/guard"
)

// stage is what all rows share.
type stage struct {
	options
	screen  *screen
	tempDir string // empty: the database is the user's
	db      *gorm.DB
	crew    *crew
	sales   []string
	caption string
}

// build gets everything ready to sell. A stage that comes with an error has to
// be torn down as well.
func build(ctx context.Context, o options, screen *screen) (s *stage, err error) {
	if err := freezes(); err != nil {
		return nil, err
	}
	s = &stage{options: o, screen: screen}
	if o.db == "" {
		if s.tempDir, err = os.MkdirTemp("", "flashsale-"); err != nil {
			return s, err
		}
		s.options.db = filepath.Join(s.tempDir, "shop.db")
	}
	if s.db, err = connect(ctx, s.options.db, o.processes); err != nil {
		return s, err
	}
	if err := gormstore.Migrate(ctx, s.db); err != nil {
		return s, err
	}
	if err := s.db.WithContext(ctx).AutoMigrate(&Item{}, &Order{}); err != nil {
		return s, fmt.Errorf("the tables of the shop cannot be made: %w", err)
	}
	if err := s.look(ctx); err != nil {
		return s, err
	}
	s.crew, err = hire(ctx, o.processes)
	return s, err
}

// look sees that the lock store answers, before a process is started, and says
// what is used. Settings of the servers that break a promise become notes: a
// program should read them when it starts.
func (s *stage) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	locks, unlink, err := openLocks(s.lock, s.db)
	if err != nil {
		return err
	}
	defer unlink()
	g, err := newGuard(locks, "flashsale")
	if err != nil {
		return err
	}
	defer g.Close(ctx) //nolint:errcheck // it holds nothing
	if _, _, err := g.Holder(ctx, guard.Key("sale")); err != nil {
		return fmt.Errorf("-lock %s does not answer: %w", redacted(s.lock), err)
	}
	hazards, err := g.Check(ctx)
	if err != nil {
		s.screen.say("note: %v", err)
	}
	for _, h := range hazards {
		s.screen.say("note: %s: %s\n      breaks: %s\n      fix:    %s", h.Store, h.Setting, h.Breaks, h.Fix)
	}
	s.caption = fmt.Sprintf("%d units, %d buyers, %d processes; stock on %s, lock on %s",
		s.units, s.buyers, s.processes, s.db.Name(), g.Plan().Lock)
	return nil
}

// errLeft says that something was not cleaned up.
var errLeft = errors.New("not everything could be removed")

// tearDown ends the processes first, so that none writes any more. It works
// after ctx has ended.
func (s *stage) tearDown(ctx context.Context) error {
	if s.crew != nil {
		s.crew.stop()
	}
	var errs []error
	if s.db != nil {
		for _, sale := range s.sales {
			errs = append(errs, s.clear(ctx, sale))
		}
		errs = append(errs, disconnect(s.db))
	}
	if s.tempDir != "" {
		errs = append(errs, os.RemoveAll(s.tempDir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", errLeft, err)
	}
	return nil
}

// clear removes the rows of a sale from a database that stays.
func (s *stage) clear(ctx context.Context, sale string) error {
	if s.tempDir != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	return clearAway(ctx, s.db, sale)
}
