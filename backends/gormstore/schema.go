package gormstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"

	"gorm.io/gorm"
)

//go:embed schema/*.sql
var schemas embed.FS

// migrateLock keeps migrating processes apart on PostgreSQL, where two that
// create one table at the same time fail in the catalog.
const migrateLock = 0x7061776c // "pawl"

// Schema returns the statements that create pawl_locks and pawl_fences, for a
// migration tool. The dialect is what GORM calls it: postgres, mysql (MariaDB
// too) or sqlite. Each statement ends with a semicolon at the end of a line.
func Schema(dialect string) (string, error) {
	text, err := schemas.ReadFile("schema/" + dialect + ".sql")
	if err != nil {
		return "", fmt.Errorf("gormstore: no schema for dialect %q (there is one for postgres, mysql and sqlite)", dialect)
	}
	return string(text), nil
}

// Migrate runs Schema on db. Repeating it is harmless, also at the same time in
// several processes. It is never called for you. It needs the right to create
// tables, even when they exist.
func Migrate(ctx context.Context, db *gorm.DB) error {
	pool, dialect, err := open(db)
	if err != nil {
		return err
	}
	text, err := Schema(dialect)
	if err != nil {
		return err
	}
	statements := strings.Split(strings.TrimSpace(text), ";\n")
	if dialect == postgres {
		err = retry(ctx, func() error { return migrateInOne(ctx, pool, statements) })
	} else {
		err = migrateEach(ctx, pool, statements)
	}
	if err != nil {
		return fmt.Errorf("gormstore: migrate: %w", err)
	}
	return nil
}

func migrateInOne(ctx context.Context, pool *sql.DB, statements []string) error {
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", migrateLock); err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// migrateEach is for databases that commit each CREATE by itself.
func migrateEach(ctx context.Context, pool *sql.DB, statements []string) error {
	for _, s := range statements {
		err := retry(ctx, func() error {
			_, err := pool.ExecContext(ctx, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
