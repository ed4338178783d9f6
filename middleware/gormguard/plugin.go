package gormguard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
)

type plugin struct{ models []any }

// Name is for db.Use.
func (*plugin) Name() string { return "pawl:gormguard" }

// Initialize puts the fence under db. gorm's resolver plugin calls it again for
// each database that it opens, so nothing is kept in p.
func (p *plugin) Initialize(db *gorm.DB) error {
	f, err := newFence(db)
	if err != nil {
		return err
	}
	for _, model := range p.models {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(model); err != nil {
			return fmt.Errorf("gormguard: Require(%T): %w", model, err)
		}
		name := stmt.Schema.Table
		f.required[strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])] = struct{}{}
	}
	if _, ok := db.Statement.ConnPool.(gorm.TxCommitter); ok {
		return errors.New("gormguard: db is a transaction: use the plugin on what gorm.Open returned")
	}
	f.main = &pool{fence: f, conn: db.ConnPool, memory: newMemory()}
	db.ConnPool = f.main
	db.Statement.ConnPool = f.main
	return f.register(db)
}

func newFence(db *gorm.DB) (*fence, error) {
	d, err := dialectOf(db.Name())
	if err != nil {
		return nil, err
	}
	return &fence{dialect: d, required: map[string]struct{}{}, gate: newGate()}, nil
}

// register adds callbacks: enter runs after those of gorm's resolver plugin, which
// come before all others, and before gorm begins its default transaction.
func (f *fence) register(db *gorm.DB) error {
	cb := db.Callback()
	first := func(begin, otherwise string, get func(string) func(*gorm.DB)) string {
		if get(begin) != nil {
			return begin
		}
		return otherwise
	}
	const begin, enter, leave = "gorm:begin_transaction", "pawl:enter", "pawl:leave"
	create, update, remove := cb.Create(), cb.Update(), cb.Delete()
	for _, err := range []error{
		create.Before(first(begin, "gorm:before_create", create.Get)).Register(enter, f.enter),
		update.Before(first(begin, "gorm:setup_reflect_value", update.Get)).Register(enter, f.enter),
		remove.Before(first(begin, "gorm:before_delete", remove.Get)).Register(enter, f.enter),
		cb.Query().Before("gorm:query").Register(enter, f.enter),
		cb.Row().Before("gorm:row").Register(enter, f.pin),
		cb.Raw().Before("gorm:raw").Register(enter, f.pin),
		create.After("*").Register(leave, f.leave),
		update.After("*").Register(leave, f.leave),
		remove.After("*").Register(leave, f.leave),
		cb.Query().After("*").Register(leave, f.leave),
	} {
		if err != nil {
			return fmt.Errorf("gormguard: register callbacks: %w", err)
		}
	}
	return nil
}

// own is what enter leaves to leave.
const own = "pawl:own"

// begun is the transaction of one statement, and the pool it was begun on.
type begun struct {
	tx   *fencedTx
	pool gorm.ConnPool
}

// enter gives a statement under a hold a transaction of its own, unless it has
// one: then its associations and preloads are in it too.
func (f *fence) enter(db *gorm.DB) {
	f.pin(db)
	ctx := db.Statement.Context
	p, outside := db.Statement.ConnPool.(*pool)
	if db.Error != nil || db.DryRun || !outside || !carries(ctx) || f.internalOnly(db.Statement) {
		return
	}
	t, err := p.begin(ctx, nil, fencing.Grants(ctx))
	if err != nil {
		_ = db.AddError(err)
		return
	}
	db.Statement.ConnPool = t
	db.InstanceSet(own, begun{t, p})
}

func (f *fence) leave(db *gorm.DB) {
	if t, ok := db.Statement.ConnPool.(*fencedTx); ok {
		t.note(db.Error) // errors of rows come late
	}
	v, ok := db.InstanceGet(own)
	if !ok {
		return
	}
	b, ok := v.(begun)
	if !ok || b.tx == nil {
		return
	}
	db.InstanceSet(own, begun{})
	db.Statement.ConnPool = b.pool
	if db.Error != nil {
		_ = b.tx.Rollback() // the reason matters
	} else if err := b.tx.Commit(); err != nil {
		_ = db.AddError(err)
	}
}

// internalOnly reports a statement on Pawl's own tables, before gorm has built it.
func (f *fence) internalOnly(stmt *gorm.Statement) bool {
	switch {
	case stmt.SQL.Len() > 0:
		return scan(f.syntax(), stmt.SQL.String()).own()
	case !strings.HasPrefix(stmt.Table, internal) || len(stmt.Joins) > 0:
		return false
	}
	return stmt.TableExpr == nil || scan(f.syntax(), "SELECT FROM "+stmt.TableExpr.SQL).own()
}

func carries(ctx context.Context) bool { return len(fencing.Grants(ctx)) > 0 }
