package gormguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// pool is a pool of connections whose transactions are fenced. gorm uses it as it
// uses *sql.DB.
type pool struct {
	*fence
	conn   gorm.ConnPool // *sql.DB, *gorm.PreparedStmtDB, *sql.Conn
	memory *memory
}

// BeginTx begins a transaction under the holds of ctx, or an unfenced one.
func (p *pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	grants := fencing.Grants(ctx)
	if len(grants) > 0 {
		t, err := p.begin(ctx, opts, grants)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	conn, err := begin(ctx, p.conn, opts)
	if err != nil {
		return nil, err
	}
	return &fencedTx{fence: p.fence, conn: conn, state: &state{}}, nil
}

// outside decides on a statement outside a transaction. It returns the grants that
// must be checked.
func (p *pool) outside(ctx context.Context, text string) (a access, grants []fencing.Grant, err error) {
	grants = fencing.Grants(ctx)
	if len(grants) == 0 && len(p.required) == 0 {
		return access{}, nil, nil
	}
	a = scan(p.syntax(), text)
	if a.own() {
		return a, nil, nil
	}
	if len(grants) == 0 {
		return a, nil, p.unfenced(a)
	}
	return a, grants, valid(grants)
}

// ExecContext gives a statement under a hold a transaction of its own. What is
// about tables and settings cannot have one everywhere: it is checked before.
func (p *pool) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	a, grants, err := p.outside(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case len(grants) == 0:
		return p.conn.ExecContext(ctx, text, args...)
	case a.defines:
		if err := p.peek(ctx, grants); err != nil {
			return nil, err
		}
		return p.conn.ExecContext(ctx, text, args...)
	}
	t, err := p.begin(ctx, nil, grants)
	if err != nil {
		return nil, err
	}
	r, err := t.ExecContext(ctx, text, args...)
	if err != nil {
		_ = t.Rollback()
		return nil, err
	}
	if err := t.Commit(); err != nil {
		return nil, err
	}
	return r, nil
}

// QueryContext reads between two looks at the registers. The rows outlive this
// call, so no transaction can be around them, and what reads needs none: they are
// of a time before the second look, when no later holder had come. A statement
// that writes cannot pass here.
func (p *pool) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	grants, err := p.reading(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := p.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	if err := p.again(ctx, grants); err != nil {
		_ = rows.Close() //nolint:sqlclosecheck // the caller gets them otherwise
		return nil, err
	}
	return rows, nil
}

// QueryRowContext is as QueryContext.
func (p *pool) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	grants, err := p.reading(ctx, text)
	if err != nil {
		return failedRow(ctx, err)
	}
	row := p.conn.QueryRowContext(ctx, text, args...)
	if err := p.again(ctx, grants); err != nil {
		_ = row.Scan() // closes it
		return failedRow(ctx, err)
	}
	return row
}

// reading decides on a statement whose rows are read outside a transaction.
func (p *pool) reading(ctx context.Context, text string) ([]fencing.Grant, error) {
	a, grants, err := p.outside(ctx, text)
	if err != nil || len(grants) == 0 {
		return nil, err
	}
	if a.writes || a.locks {
		return nil, fmt.Errorf("%w: Row, Rows and Scan of a statement that writes or locks need a transaction under a hold: %.40q",
			guard.ErrInvalid, text)
	}
	return grants, p.peek(ctx, grants)
}

// again looks once more while the rows are open, for which a pool of one
// connection has none.
func (p *pool) again(ctx context.Context, grants []fencing.Grant) error {
	if len(grants) == 0 || p.oneConnection() {
		return nil
	}
	return p.look(ctx, grants)
}

// peek raises the registers and looks at them.
func (p *pool) peek(ctx context.Context, grants []fencing.Grant) error {
	if p.oneConnection() {
		if err := p.gate.wait(ctx, grants, false); err != nil {
			return err
		}
	}
	var err error
	for range attempts {
		if err = p.raise(ctx, grants); err == nil {
			err = p.look(ctx, grants)
		}
		if !errors.Is(err, errBehind) {
			return err
		}
		p.memory.forget(grants)
	}
	return err
}

// PrepareContext is called by gorm for sessions that prepare and were not put
// below the fence by a callback. What is prepared there runs unseen.
func (p *pool) PrepareContext(ctx context.Context, text string) (*sql.Stmt, error) {
	_, grants, err := p.outside(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(grants) > 0 {
		return nil, fmt.Errorf("%w: a statement prepared outside a transaction is not fenced", guard.ErrInvalid)
	}
	return p.conn.PrepareContext(ctx, text)
}

// GetDBConn is for gorm's DB method.
func (p *pool) GetDBConn() (*sql.DB, error) { return dbOf(p.conn) }

// bare is the pool without prepared statements.
func (p *pool) bare() gorm.ConnPool {
	if prepared, ok := p.conn.(*gorm.PreparedStmtDB); ok {
		return prepared.ConnPool
	}
	return p.conn
}

// oneWriter and oneConnection report that a transaction begun inside another
// would wait for that one.
func (p *pool) oneWriter() bool { return p.immediate() != "" }

func (p *pool) oneConnection() bool {
	db, ok := p.bare().(*sql.DB)
	return ok && db.Stats().MaxOpenConnections == 1
}

// dbOf lets gorm find the *sql.DB, also under a *sql.Tx.
func dbOf(conn gorm.ConnPool) (*sql.DB, error) {
	return (&gorm.DB{Config: &gorm.Config{}, Statement: &gorm.Statement{ConnPool: conn}}).DB()
}

// refusal is a connector that connects to nothing.
type refusal struct{ err error }

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }
func (r refusal) Driver() driver.Driver                        { return nil }

// failedRow is a row whose Scan returns err: *sql.Row cannot be made otherwise.
func failedRow(ctx context.Context, err error) *sql.Row {
	db := sql.OpenDB(refusal{err})
	defer db.Close() //nolint:errcheck // nothing is open
	return db.QueryRowContext(context.WithoutCancel(ctx), "")
}
