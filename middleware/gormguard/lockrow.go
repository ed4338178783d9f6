package gormguard

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/guard"
)

// maxResource is what the column of pawl_fences takes, in bytes.
const maxResource = 600

// LockRow locks key's fence row until tx ends (SELECT ... FOR UPDATE after an
// upsert; SQLite: an immediate transaction): a lock that needs no lock store.
//
// Call it before the first read: above READ COMMITTED (MariaDB's default is
// REPEATABLE READ) a transaction that has read goes on seeing what it saw, and on
// SQLite it fails when the file has changed since. It waits as the database does
// (lock_timeout, innodb_lock_wait_timeout, busy_timeout) and as long as tx's
// context lasts. Transactions that lock several keys should sort them.
//
// key is a resource by its full name. A guard's hold of k in namespace n is
// fenced by the row "n:k": LockRow with that name also waits for, and keeps
// out, the fenced transactions of its holders. The row keeps its token; rows are
// never deleted, so keys should be few. The lock goes with a rollback to a
// savepoint made before it.
func LockRow(tx *gorm.DB, key string) error {
	if tx == nil || tx.Statement == nil || tx.Dialector == nil {
		return fmt.Errorf("%w: gormguard.LockRow: tx is nil", guard.ErrInvalid)
	}
	if tx.Error != nil {
		return tx.Error
	}
	if key == "" || len(key) > maxResource || !utf8.ValidString(key) || strings.IndexByte(key, 0) >= 0 {
		return fmt.Errorf("%w: gormguard.LockRow: the key is empty, not UTF-8, or longer than %d bytes: %.40q", guard.ErrInvalid, maxResource, key)
	}
	f, err := newFence(tx)
	if err != nil {
		return fmt.Errorf("%w: %w", guard.ErrInvalid, err)
	}
	t, ok := f.wrap(tx.Statement.ConnPool).(*fencedTx)
	if !ok {
		return fmt.Errorf("%w: gormguard.LockRow: not in a transaction: the lock would end with the statement", guard.ErrInvalid)
	}
	return t.lockRow(tx.Statement.Context, key)
}

func (t *fencedTx) lockRow(ctx context.Context, key string) error {
	q := t.row(key)
	if err := t.open(); err != nil {
		return err
	}
	if _, err := t.conn.ExecContext(ctx, q.text, q.args...); err != nil {
		t.note(err)
		return fmt.Errorf("gormguard: lock row %q: %w", key, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locked = true
	return nil
}
