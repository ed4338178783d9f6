package gormstore

import (
	"context"
	"database/sql"
	"path/filepath"
)

func sqliteCheck(ctx context.Context, pool *sql.DB) ([]rule, error) {
	var file, journal string
	var synchronous, timeout, tables int
	err := pool.QueryRowContext(ctx, `SELECT
	(SELECT coalesce(file, '') FROM pragma_database_list WHERE name = 'main'),
	(SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous), (SELECT timeout FROM pragma_busy_timeout),
	(SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'pawl_locks')`).
		Scan(&file, &journal, &synchronous, &timeout, &tables)
	if err != nil {
		return nil, err
	}
	var network string
	if file != "" {
		network, err = networkFS(filepath.Dir(file))
	}
	const off, normal = 0, 1
	volatile := journal == "off" || journal == "memory" && file != ""
	return []rule{
		missingTable(tables == 0),
		grave(file == "", "the database is in memory", "exclusion between processes, and between connections without a shared cache", "use a file"),
		grave(network != "", "the file is on a network file system ("+network+")", "exclusion: SQLite's own locks fail there",
			"use a local file system, or PostgreSQL or MySQL"),
		grave(volatile, "journal_mode = "+journal, "the file when a process dies while it writes", "set it to WAL"),
		grave(synchronous == off, "synchronous = OFF", "the file after a power cut", "set it to FULL"),
		grave(synchronous == normal && journal == "wal", "synchronous = NORMAL", "what was committed last before a power cut", "set it to FULL"),
		warn(journal != "wal" && !volatile && file != "", "journal_mode = "+journal, "speed: readers and writers wait for each other", "set it to WAL"),
		warn(timeout == 0, "busy_timeout = 0", "the application's own transactions, which fail when two write at once", "set it to 5000"),
	}, err
}
