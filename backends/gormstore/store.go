package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/internal/batch"
)

// Dialects, as GORM names them.
const (
	postgres = "postgres"
	mysql    = "mysql"
	sqlite   = "sqlite"
)

// minTTL keeps [driver.Grant].Until ahead of the send time: the margin of a
// lease is more than 5 ms, and SQLite's clock counts milliseconds.
const minTTL = 10 * time.Millisecond

// Store keeps locks in the table pawl_locks. Make it with [New]; the zero Store
// is not usable. It is safe for concurrent use, and starts no goroutine but
// those of calls that have not returned.
type Store struct {
	pool    *sql.DB
	dialect dialect
	renewal batch.Lane[driver.Grant, verdict]
}

// dialect is what differs between the databases.
type dialect struct {
	name string

	// acquire takes key, owner, the generation as a token, TTL in us. Its value is a token, or refused, or outdated.
	// outdated, unless "", takes key and generation after a refusal. Its value is outdated if that was the reason.
	acquire, outdated string
	// release takes key, owner, token (0: any). Its value is a token, or refused.
	release string
	// holder takes key and gives owner, token, us left; or no row.
	holder string
	// idle takes a key and a number, and gives that many keys after it that are free since long and may be forgotten.
	// forget takes the keys of forgetRows, and deletes those rows if that still holds.
	idle, forget string

	value func(ctx context.Context, pool *sql.DB, text string, args ...any) (int64, error)
	renew func(ctx context.Context, pool *sql.DB, grants []driver.Grant) (map[hold]bool, error)
	check func(ctx context.Context, pool *sql.DB) ([]rule, error)
}

// Values that no token has.
const (
	refused  = 0
	outdated = 1
)

// New returns a store on the connection pool of db. It does not use the
// network, and never closes db. Statements go to the pool itself: hooks,
// plugins and the logger of db do not see them, and a hold in the context does
// not fence them. It refuses a db that is a transaction, is in DryRun mode, or
// is of another database than the package serves.
func New(db *gorm.DB) (*Store, error) {
	pool, name, err := open(db)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool}
	switch name {
	case postgres:
		s.dialect = postgresDialect()
	case mysql:
		s.dialect = mysqlDialect()
	case sqlite:
		s.dialect = sqliteDialect()
	}
	s.renewal.Key = func(g driver.Grant) string { return g.Key }
	s.renewal.Send = s.renew
	return s, nil
}

// Traits implements [driver.Backend]. The name is the dialect's.
func (s *Store) Traits() driver.Traits {
	return driver.Traits{Name: s.dialect.name, Consistency: driver.Primary, MinTTL: minTTL}
}

// open returns the connection pool under db. GORM's own session, hooks and
// plugins stay out of the store's statements: a plugin that fences statements
// would fence the lock with itself.
func open(db *gorm.DB) (*sql.DB, string, error) {
	switch {
	case db == nil || db.Config == nil || db.Dialector == nil || db.Statement == nil:
		return nil, "", errors.New("gormstore: db is nil or was not made by gorm.Open")
	case db.Error != nil:
		return nil, "", fmt.Errorf("gormstore: db carries an error: %w", db.Error)
	case db.DryRun:
		return nil, "", errors.New("gormstore: db is in DryRun mode and would execute nothing")
	}
	if _, inTx := db.Statement.ConnPool.(gorm.TxCommitter); inTx {
		return nil, "", errors.New("gormstore: db is a transaction: a lock must outlive it and be seen before it commits; give the db it was begun on")
	}
	name := db.Name()
	if _, err := Schema(name); err != nil {
		return nil, "", err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, "", fmt.Errorf("gormstore: db has no connection pool: %w", err)
	}
	return pool, name, nil
}
