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
//   - Keep transactions short and wait for nothing else inside: while one is open,
//     the next holder waits for it, and one that is idle for long is ended.
//
// # What happens
//
// The first statement under a hold raises the register, in a statement of its
// own. Then every transaction begins with a shared locking read of the registers
// of its holds and goes on only if each has the token of that hold: else
// [fencing.ErrStale], or [fencing.ErrForeign] for the token of another store
// without a higher generation. A later holder cannot raise the register before
// that transaction has ended, so it reads what was committed; transactions of one
// hold do not wait for each other. A read-only transaction reads the registers
// without locking them.
//
// A statement outside a transaction gets one of its own; several are cheaper in one
// transaction, which is checked once. Row, Rows and Scan are checked before and
// after instead, which suffices for what only reads. What writes (RETURNING, FOR
// UPDATE) is refused there; a function that writes is not seen: call it in a
// transaction.
//
// A fenced transaction does not end unseen: COMMIT and ROLLBACK as text are
// refused, on MySQL and MariaDB also what commits implicitly (CREATE TABLE,
// TRUNCATE). Once the database has rolled it back (MariaDB after a deadlock) it
// refuses everything, for the session would go on without it.
//
// # Limits
//
// On PostgreSQL and MariaDB the database ends a fenced transaction that is idle
// for about the TTL of the hold, as a frozen holder leaves it, and bounds its waits
// for locks likewise (30 s for a hold that was not made by guard in this process;
// stricter settings stay). MySQL bounds only the waits.
//
// SQLite has one writer and no shared locking read: there a fenced transaction is
// an immediate one. It has no such limits either: a process that is frozen
// between BEGIN and COMMIT blocks every writer of the file until it goes on or is
// killed. Set busy_timeout. There, and on a pool of one connection, a second
// transaction of the same hold (another goroutine's, or the outer db used inside a
// transaction) waits up to a second for the first and then fails.
//
// Not seen is what bypasses GORM: the *sql.DB itself, triggers, stored procedures.
// The tables pawl_* are never fenced.
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
// use. Use this plugin before that one, so that it is under the databases that
// it opens; otherwise transactions begun with its clauses are refused.
func Plugin(opts ...Option) gorm.Plugin {
	p := &plugin{}
	for _, o := range opts {
		o.applyPlugin(p)
	}
	return p
}
