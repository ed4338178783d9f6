// Package gormguard fences GORM accesses.
//
// A lease cannot keep a holder that was frozen from acting late. The database
// can: it keeps, in the table pawl_fences, the greatest token that came for each
// resource, and refuses a holder with a smaller one. [Plugin] does so for every
// statement whose context carries a hold (the context that guard's WithLock, Lock
// or Bind made), [WithLock] for one transaction. The table is created by
// gormstore.Migrate in the database whose rows are protected, wherever the locks
// themselves are.
//
// # Rules
//
//   - Take the lock, then begin the transaction. One that began without the hold
//     may have read before it: its statements fail with [ErrFenceLate].
//   - Give the database the context of the hold, with db.WithContext(ctx). Without
//     it nothing is checked, and [Require] is there to notice that.
//   - Read under the hold what you decide by. What was read before it is old.
//   - Keep transactions short: while one is open, the next holder waits for it.
//
// # What happens
//
// The first statement under a hold raises the register, in a statement of its
// own. Then every transaction begins with a shared locking read of the registers
// of its holds and goes on only if each has the token of that hold: else
// [fencing.ErrStale], or [fencing.ErrForeign] for the token of another store
// without a higher generation. A later holder cannot raise the register before
// that transaction has ended, so it reads what was committed; transactions of one
// hold do not wait for each other. A statement outside a transaction gets one of
// its own. Read-only transactions, Row, Rows and Scan look at the register
// without locking it, which suffices for what does not write; a statement that
// does (RETURNING, FOR UPDATE) is refused there.
//
// On PostgreSQL and MariaDB the database ends a fenced transaction that a frozen
// holder left idle for about the TTL of the hold, and bounds its waits for locks
// likewise (30 s for a hold that was not made by guard in this process). MySQL has
// no limit for idle transactions, only for the waits.
//
// SQLite has one writer and no shared locking read: there a fenced transaction is
// an immediate one. It has no such limits either: a process that is frozen
// between BEGIN and COMMIT blocks every writer of the file until it goes on or is
// killed. Set busy_timeout. A second transaction of the same hold (another
// goroutine, or the outer db used inside a transaction) waits up to a second for
// the first and then fails.
//
// # Not seen
//
// What bypasses GORM: the *sql.DB itself, triggers, stored procedures. The tables
// pawl_* are never fenced. Of a session that was made before db.Use, transactions
// are refused under a hold.
package gormguard

import (
	"errors"

	"gorm.io/gorm"
)

// ErrUnfenced reports an access to a required table whose context holds
// nothing: db without WithContext, or the outer ctx. ErrFenceLate reports a
// statement with a hold that its transaction did not start with.
var (
	ErrUnfenced  = errors.New("gormguard: access outside a hold")
	ErrFenceLate = errors.New("gormguard: lock taken after the transaction began")
)

// Option changes what [Plugin] does.
type Option interface {
	applyPlugin(*plugin)
}

type required []any

func (r required) applyPlugin(p *plugin) { p.models = append(p.models, r...) }

// Require refuses writes to (and locking reads of) the tables of models with
// ErrUnfenced unless their context holds something. A transaction that began with
// a hold, or called [LockRow], has it for all its statements.
//
// Tables are found in the final SQL, so raw statements count as well: a required
// table is written where its name stands as the target of an INSERT, UPDATE,
// DELETE, REPLACE, MERGE, TRUNCATE, COPY or LOAD, whatever its schema or alias.
// Views, triggers and procedures hide it. Statements that define tables are
// let through, and plain reads.
func Require(models ...any) Option { return required(models) }

// Plugin fences every transaction whose statements carry a hold in their
// context. Give it to db.Use once for each *gorm.DB, before sessions are made
// from that. It knows PostgreSQL, MySQL, MariaDB and SQLite.
//
// Under a hold, reads too go to the primary when gorm.io/plugin/dbresolver is in
// use, in either order of db.Use.
func Plugin(opts ...Option) gorm.Plugin {
	p := &plugin{}
	for _, o := range opts {
		o.applyPlugin(p)
	}
	return p
}
