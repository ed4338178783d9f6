package gormguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
)

// cleanup bounds what is done on a connection after its transaction.
const cleanup = 2 * time.Second

// session is the connection of one fenced transaction, kept a little longer than
// that for databases that need a statement after it. The nil session is that of
// the others.
type session struct {
	conn    *sql.Conn
	own     bool // taken from the pool for this
	restore string
	undo    string
}

// connection takes the one that a transaction of p will have. It is nil where
// nothing has to follow the transaction, and for pools of a kind unknown.
func (p *pool) connection(ctx context.Context, m mode) (*session, error) {
	set, restore := "", ""
	if m == shared {
		set, restore = p.limits(limit(ctx))
	}
	s := &session{restore: restore, undo: p.undo()}
	if s.restore == "" && s.undo == "" {
		return nil, nil //nolint:nilnil // see session
	}
	switch on := p.bare().(type) {
	case *sql.DB:
		conn, err := on.Conn(ctx)
		if err != nil {
			return nil, err
		}
		s.conn, s.own = conn, true
	case *sql.Conn:
		s.conn = on
	default:
		return nil, nil //nolint:nilnil // see session
	}
	if set != "" {
		if _, err := s.conn.ExecContext(ctx, set); err != nil {
			s.discard()
			return nil, err
		}
	}
	return s, nil
}

// end gives the connection back as it was. If that fails nobody gets it again.
func (s *session) end(ctx context.Context, committed error) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	var err error
	if committed != nil && s.undo != "" {
		_, _ = s.conn.ExecContext(ctx, s.undo) // fails when the transaction is over, as it should be
	}
	if s.restore != "" {
		_, err = s.conn.ExecContext(ctx, s.restore)
	}
	if err != nil {
		s.discard()
	} else if s.own {
		_ = s.conn.Close()
	}
}

func (s *session) discard() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}

// open begins a transaction with the limits of its hold.
func (p *pool) open(ctx context.Context, opts *sql.TxOptions, grants []fencing.Grant, m mode, leave func()) (*fencedTx, error) {
	s, err := p.connection(ctx, m)
	var conn transaction
	if err == nil {
		if conn, err = p.start(ctx, opts, s); err != nil {
			s.end(ctx, nil)
		}
	}
	if err != nil {
		if leave != nil {
			leave()
		}
		return nil, err
	}
	t := &fencedTx{fence: p.fence, conn: conn, state: &state{grants: grants}}
	if s != nil || leave != nil {
		t.endWith(ctx, func(committed error) {
			s.end(ctx, committed)
			if leave != nil {
				leave()
			}
		})
	}
	return t, nil
}

func (p *pool) start(ctx context.Context, opts *sql.TxOptions, s *session) (transaction, error) {
	if s == nil {
		return begin(ctx, p.conn, opts)
	}
	conn, err := s.conn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	if prepared, ok := p.conn.(*gorm.PreparedStmtDB); ok {
		return &gorm.PreparedStmtTX{Tx: conn, PreparedStmtDB: prepared}, nil
	}
	return conn, nil
}

// begin is what gorm does with a pool.
func begin(ctx context.Context, on gorm.ConnPool, opts *sql.TxOptions) (transaction, error) {
	var conn gorm.ConnPool
	var err error
	switch b := on.(type) {
	case gorm.TxBeginner:
		var t *sql.Tx
		if t, err = b.BeginTx(ctx, opts); err == nil {
			conn = t
		}
	case gorm.ConnPoolBeginner:
		conn, err = b.BeginTx(ctx, opts)
	default:
		err = gorm.ErrInvalidTransaction
	}
	if err != nil {
		return nil, err
	}
	t, ok := conn.(transaction)
	if !ok {
		return nil, gorm.ErrInvalidTransaction
	}
	return t, nil
}
