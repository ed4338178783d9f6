package gormguard

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// transaction is what gorm needs of one.
type transaction interface {
	gorm.ConnPool
	gorm.TxCommitter
}

// fencedTx is a transaction that lets pass the statements of the holds it began with.
// gorm uses it as it uses *sql.Tx.
type fencedTx struct {
	*fence
	conn transaction
	*state
}

// state is what a transaction, and the same with prepared statements, share.
type state struct {
	grants []fencing.Grant // checked when it began
	late   bool            // nobody saw it begin

	mu     sync.Mutex
	locked bool  // holds a row of LockRow
	over   error // why the database ended it before its time
	end    func(committed error)
}

// endWith calls end once: when the transaction ends, or ctx, with which the
// database/sql package rolls it back.
func (s *state) endWith(ctx context.Context, end func(committed error)) {
	var once sync.Once
	stop := context.AfterFunc(ctx, func() { once.Do(func() { end(context.Cause(ctx)) }) })
	s.end = func(committed error) {
		stop()
		once.Do(func() { end(committed) })
	}
}

// admit decides on one statement before it is sent.
func (t *fencedTx) admit(ctx context.Context, text string) error {
	grants := fencing.Grants(ctx)
	if len(grants) == 0 && len(t.grants) == 0 && len(t.required) == 0 {
		return nil
	}
	a := scan(t.syntax(), text)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over != nil:
		return rolledBack(t.over)
	case a.own():
		return nil
	case t.held() && (a.controls || a.commits && t.commits()):
		return fmt.Errorf("%w: the statement would end the fenced transaction: %.40q", guard.ErrInvalid, text)
	}
	for _, g := range grants {
		if !slices.Contains(t.grants, g) {
			return t.tooLate(g)
		}
	}
	if a.rewinds {
		t.locked = false // the lock may have come after the savepoint
	}
	if t.held() {
		return nil
	}
	return t.unfenced(a)
}

// held reports that the transaction began with a hold or has a locked row. The
// caller has t.mu.
func (s *state) held() bool { return len(s.grants) > 0 || s.locked }

// unfenced is the error of an access without a hold to a table that needs one.
func (f *fence) unfenced(a access) error {
	name, hit := a.hits(f.required)
	if !hit {
		return nil
	}
	return fmt.Errorf("%w: table %q needs one: take the lock, then db.WithContext(ctx)", ErrUnfenced, name)
}

func (t *fencedTx) tooLate(g fencing.Grant) error {
	why := "take the lock before BEGIN"
	if t.late {
		why = "the plugin did not see the transaction begin: use a session made after db.Use"
	}
	return fmt.Errorf("%w: %q: %s", ErrFenceLate, g.Resource, why)
}

// note takes the outcome of a statement. Where the database rolled back, what
// the session does next would commit by itself, unfenced.
func (t *fencedTx) note(err error) {
	if err == nil || !t.ends(err) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil && t.held() {
		t.over = err
	}
}

// open is why the transaction is not.
func (s *state) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return rolledBack(s.over)
	}
	return nil
}

func rolledBack(why error) error {
	return fmt.Errorf("gormguard: the database has rolled this transaction back: %w", why)
}

// sent is the connection for text: savepoints cannot be prepared everywhere.
func (t *fencedTx) sent(text string) gorm.ConnPool {
	prepared, ok := t.conn.(*gorm.PreparedStmtTX)
	if ok && (strings.HasPrefix(text, "SAVEPOINT ") || strings.HasPrefix(text, "ROLLBACK TO ")) {
		return prepared.Tx
	}
	return t.conn
}

func (t *fencedTx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if err := t.admit(ctx, text); err != nil {
		return nil, err
	}
	r, err := t.sent(text).ExecContext(ctx, text, args...)
	t.note(err)
	return r, err
}

func (t *fencedTx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if err := t.admit(ctx, text); err != nil {
		return nil, err
	}
	rows, err := t.conn.QueryContext(ctx, text, args...)
	t.note(err)
	return rows, err
}

func (t *fencedTx) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if err := t.admit(ctx, text); err != nil {
		return failedRow(ctx, err)
	}
	row := t.conn.QueryRowContext(ctx, text, args...)
	t.note(row.Err())
	return row
}

func (t *fencedTx) PrepareContext(ctx context.Context, text string) (*sql.Stmt, error) {
	if err := t.admit(ctx, text); err != nil {
		return nil, err
	}
	return t.conn.PrepareContext(ctx, text)
}

// StmtContext is called by gorm for sessions that prepare. The callbacks put such
// a session below the fence, so that admit sees the text.
func (t *fencedTx) StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt {
	if inner, ok := t.conn.(gorm.Tx); ok {
		return inner.StmtContext(ctx, stmt)
	}
	return stmt
}

func (t *fencedTx) Commit() error {
	if err := t.open(); err != nil {
		_ = t.Rollback()
		return err
	}
	err := t.conn.Commit()
	if t.end != nil {
		t.end(err)
	}
	return err
}

func (t *fencedTx) Rollback() error {
	err := t.conn.Rollback()
	if t.end != nil {
		t.end(err)
	}
	return err
}

// GetDBConn is for gorm's DB method.
func (t *fencedTx) GetDBConn() (*sql.DB, error) { return dbOf(t.conn) }
