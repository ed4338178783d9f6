package gormguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// WithLock holds key, opens a transaction, fences it before the first read,
// runs fn, commits, and only then unlocks. It needs no plugin.
//
// The transaction is READ COMMITTED. Work with tx, which carries the context of
// the hold; db is another connection, and without the plugin an unfenced one.
//
// Nil means committed. A lock that is lost before COMMIT rolls back and is
// ErrLost; once COMMIT is confirmed a loss changes nothing. A COMMIT whose answer
// did not come is [guard.ErrOutcomeUnknown]: the rows may be there. fn's own
// error comes back as it is, after a rollback; a panic and runtime.Goexit roll
// back, unlock and go on.
//
// db must not be a transaction: one that has begun before the lock may have
// read what the last holder has changed since.
func WithLock(
	ctx context.Context, g *guard.Guard, db *gorm.DB, key string,
	fn func(ctx context.Context, tx *gorm.DB) error, opts ...guard.LockOption,
) error {
	p, err := poolOf(g, db, fn)
	if err != nil {
		return err
	}
	committed := false
	err = g.WithLock(ctx, key, func(ctx context.Context) error {
		err := p.run(ctx, db, key, fn)
		committed = err == nil
		return err
	}, opts...)
	if committed {
		return nil // whatever happened to the lock afterwards
	}
	return err
}

// poolOf is db's pool under a fence: the plugin's, or one for this call.
func poolOf(g *guard.Guard, db *gorm.DB, fn func(context.Context, *gorm.DB) error) (*pool, error) {
	switch {
	case g == nil:
		return nil, fmt.Errorf("%w: gormguard.WithLock: the guard is nil", guard.ErrInvalid)
	case fn == nil:
		return nil, fmt.Errorf("%w: gormguard.WithLock: fn is nil", guard.ErrInvalid)
	case db == nil || db.Config == nil || db.Statement == nil || db.Dialector == nil:
		return nil, fmt.Errorf("%w: gormguard.WithLock: db is nil or was not made by gorm.Open", guard.ErrInvalid)
	case db.Error != nil:
		return nil, fmt.Errorf("%w: gormguard.WithLock: db carries an error: %w", guard.ErrInvalid, db.Error)
	}
	f, err := newFence(db)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", guard.ErrInvalid, err)
	}
	p, ok := f.wrap(db.Statement.ConnPool).(*pool)
	if !ok {
		return nil, fmt.Errorf("%w: gormguard.WithLock: db is a transaction already: take the lock before BEGIN", guard.ErrInvalid)
	}
	return p, nil
}

// run runs fn in a transaction fenced by the holds of ctx. A nil error means
// committed.
func (p *pool) run(ctx context.Context, db *gorm.DB, key string, fn func(context.Context, *gorm.DB) error) error {
	t, err := p.begin(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, fencing.Grants(ctx))
	if err != nil {
		return err
	}
	open := true
	defer func() { // fn failed, panicked or called Goexit
		if open {
			_ = t.Rollback()
		}
	}()
	tx := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	tx.Statement.ConnPool = t
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	open = false
	return p.outcome(key, t.Commit())
}

// outcome tells a COMMIT that was refused from one whose answer did not come.
func (p *pool) outcome(key string, err error) error {
	if err == nil || errors.Is(err, sql.ErrTxDone) || p.refused(err) {
		return err
	}
	return fmt.Errorf("%w: commit under %q: %w", guard.ErrOutcomeUnknown, key, err)
}
