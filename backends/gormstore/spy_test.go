package gormstore_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// spy sees the statements that reach a database driver. It can lose a reply.
type spy struct {
	open func() (sqldriver.Conn, error)
	drv  sqldriver.Driver

	mu   sync.Mutex
	seen []string
	lose string // the next statement that contains it succeeds, and its caller hears lost
	lost error
}

// watched opens a database through a spy.
func (d database) watched(t testing.TB, dsn string) (*gorm.DB, *spy) {
	t.Helper()
	plain, err := sql.Open(d.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	drv := plain.Driver()
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	s := &spy{drv: drv, open: func() (sqldriver.Conn, error) { return drv.Open(dsn) }}
	conns := sql.OpenDB(s)
	t.Cleanup(func() { _ = conns.Close() })
	db, err := gorm.Open(d.over(conns), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	s.take()
	return db, s
}

// take returns the statements seen since the last take.
func (s *spy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func (s *spy) loseReply(statement string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose, s.lost = statement, err
}

func (s *spy) note(query string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, query)
	if s.lost != nil && strings.Contains(query, s.lose) {
		err := s.lost
		s.lost = nil
		return err
	}
	return nil
}

func (s *spy) Connect(context.Context) (sqldriver.Conn, error) {
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	return &spyConn{Conn: c, spy: s}, nil
}

func (s *spy) Driver() sqldriver.Driver { return s.drv }

// spyConn has what the three drivers have.
type spyConn struct {
	sqldriver.Conn
	spy *spy
}

func inner[I any](c *spyConn) I { return unshared(c.Conn).(I) }

func unshared(c sqldriver.Conn) sqldriver.Conn {
	if s, ok := c.(shared); ok {
		return s.Conn
	}
	return c
}

func (c *spyConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	lost := c.spy.note(query)
	result, err := inner[sqldriver.ExecerContext](c).ExecContext(ctx, query, args)
	if err == nil && lost != nil {
		return nil, lost
	}
	return result, err
}

func (c *spyConn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	lost := c.spy.note(query)
	rows, err := inner[sqldriver.QueryerContext](c).QueryContext(ctx, query, args)
	if err != nil || lost == nil {
		return rows, err
	}
	values := make([]sqldriver.Value, len(rows.Columns()))
	for rows.Next(values) == nil { // executes it: SQLite's driver is lazy
		continue
	}
	_ = rows.Close()
	return nil, lost
}

func (c *spyConn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	_ = c.spy.note("BEGIN")
	return inner[sqldriver.ConnBeginTx](c).BeginTx(ctx, opts)
}

func (c *spyConn) CheckNamedValue(v *sqldriver.NamedValue) error {
	if checker, ok := unshared(c.Conn).(sqldriver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return sqldriver.ErrSkip
}

func TestStore_CallsAreOneStatement(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			d.migrated(t, dsn)
			db, spy := d.watched(t, dsn)
			s := storeOn(t, db)
			want := func(call string, n int) {
				t.Helper()
				if seen := spy.take(); len(seen) != n || slices.Contains(seen, "BEGIN") {
					t.Errorf("statements of %s: got %d, want %d and no transaction:\n%s", call, len(seen), n, strings.Join(seen, "\n"))
				}
			}
			g := acquire(t, s, request("k"))
			want("Acquire", 1)
			if _, err := s.Acquire(t.Context(), request("k")); !isBusy(err) {
				t.Errorf("Acquire of a held key: got %v, want ErrBusy", err)
			}
			want("Acquire of a held key", map[string]int{"SQLite": 2, "PostgreSQL": 1, "MariaDB": 1}[d.name])
			if _, err := s.Renew(t.Context(), g); err != nil {
				t.Error(err)
			}
			want("Renew", map[string]int{"SQLite": 1, "PostgreSQL": 1, "MariaDB": 2}[d.name])
			release(t, s, g)
			want("Release", 1)
		})
	}
}
