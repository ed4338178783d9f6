package gormguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/dberr"
	"github.com/pawl-go/pawl/internal/hold"
)

// holdLimit bounds transactions whose hold was not made by guard in this
// process, so that its TTL is not known.
const holdLimit = 30 * time.Second

// attempts to begin a transaction: the first raises what this process raised
// already, if the register lost it, and a conflict at the check has done nothing.
const attempts = 3

// fence is what the connections of one *gorm.DB share.
type fence struct {
	dialect
	required map[string]struct{} // tables
	gate     *gate
	main     *pool // what gorm uses when nobody says otherwise; nil: the plugin is not installed
}

// limit is how long a transaction of ctx may be idle.
func limit(ctx context.Context) time.Duration { return hold.TTL(ctx, holdLimit) }

// raise makes the registers know grants, each in a statement that commits by
// itself: before BEGIN, so that a pool of one connection suffices, and so that no
// rollback takes it back. It waits for the transactions of earlier holders.
func (p *pool) raise(ctx context.Context, grants []fencing.Grant) error {
	for _, g := range grants {
		if p.memory.knows(g) {
			continue
		}
		if p.peeks() {
			switch err := p.look(ctx, []fencing.Grant{g}); {
			case err == nil:
				p.memory.learn(g)
				continue
			case !errors.Is(err, errBehind):
				return err
			}
		}
		q := p.dialect.raise(g)
		if _, err := p.bare().ExecContext(ctx, q.text, q.args...); err != nil {
			return fmt.Errorf("gormguard: raise %q: %w", g.Resource, dberr.Hint(err))
		}
		p.memory.learn(g)
	}
	return nil
}

// look compares grants with their registers, without a lock.
func (p *pool) look(ctx context.Context, grants []fencing.Grant) error {
	found, err := readRegisters(ctx, p.bare(), p.read(grants, plain, 0))
	if err != nil {
		return err
	}
	return judgeAll(found, grants)
}

// check compares grants with their registers inside a transaction, as its first
// statement. Where it locks, later holders wait for the end of the transaction.
func (f *fence) check(ctx context.Context, tx gorm.ConnPool, grants []fencing.Grant, m mode) error {
	if first := f.immediate(); first != "" && m == shared {
		if _, err := tx.ExecContext(ctx, first); err != nil {
			return fmt.Errorf("gormguard: check: %w", dberr.Hint(err))
		}
	}
	found, err := readRegisters(ctx, tx, f.read(grants, m, limit(ctx)))
	if err != nil {
		return err
	}
	return judgeAll(found, grants)
}

func readRegisters(ctx context.Context, on gorm.ConnPool, q query) (found map[string]register, err error) {
	rows, err := on.QueryContext(ctx, q.text, q.args...)
	if err != nil {
		return nil, fmt.Errorf("gormguard: check: %w", dberr.Hint(err))
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found = map[string]register{}
	for rows.Next() {
		var r register
		if err := rows.Scan(&r.resource, &r.origin, &r.token); err != nil {
			return nil, fmt.Errorf("gormguard: check: %w", err)
		}
		found[r.resource] = r
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("gormguard: check: %w", err)
	}
	return found, nil
}

// begin raises the registers of grants, begins a transaction and checks them.
func (p *pool) begin(ctx context.Context, opts *sql.TxOptions, grants []fencing.Grant) (_ *fencedTx, err error) {
	if err := valid(grants); err != nil {
		return nil, err
	}
	for range attempts {
		var t *fencedTx
		t, err = p.try(ctx, opts, grants)
		switch {
		case err == nil:
			return t, nil
		case errors.Is(err, errBehind):
			p.memory.forget(grants)
		case !conflict(err):
			return nil, err
		}
	}
	return nil, err
}

func (p *pool) try(ctx context.Context, opts *sql.TxOptions, grants []fencing.Grant) (*fencedTx, error) {
	var leave func()
	if p.oneWriter() || p.oneConnection() {
		if err := p.gate.wait(ctx, grants, true); err != nil {
			return nil, err
		}
		leave = func() { p.gate.leave(grants) }
	}
	if err := p.raise(ctx, grants); err != nil {
		if leave != nil {
			leave()
		}
		return nil, err
	}
	m := shared
	if opts != nil && opts.ReadOnly {
		m = plain
	}
	t, err := p.open(ctx, opts, grants, m, leave)
	if err != nil {
		return nil, err
	}
	if err := p.check(ctx, t.conn, grants, m); err != nil {
		_ = t.Rollback() // it has done nothing; the reason matters
		return nil, err
	}
	return t, nil
}

// conflict reports a serialization failure of the check on PostgreSQL: above READ
// COMMITTED the snapshot is older than a raise that it waited for.
func conflict(err error) bool {
	state := sqlState(err)
	return state == "40001" || state == "40P01"
}
