package gormstore

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// Dialects, as GORM names them.
const (
	postgres = "postgres"
	mysql    = "mysql"
	sqlite   = "sqlite"
)

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
	dialect := db.Name()
	if _, err := Schema(dialect); err != nil {
		return nil, "", fmt.Errorf("gormstore: dialect %q is not supported (use postgres, mysql or sqlite)", dialect)
	}
	pool, err := db.DB()
	if err != nil {
		return nil, "", fmt.Errorf("gormstore: db has no connection pool: %w", err)
	}
	return pool, dialect, nil
}
