package gormstore

import (
	"context"
	"database/sql"
	"errors"
)

func postgresCheck(ctx context.Context, pool *sql.DB) ([]rule, error) {
	var recovery bool
	var commit, synchronous, fsync, isolation, persistence string
	var standbys int
	err := pool.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), current_setting('synchronous_commit'),
	current_setting('synchronous_standby_names'), current_setting('fsync'), current_setting('default_transaction_isolation'),
	coalesce((SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('pawl_locks')), ''),
	(SELECT count(*) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup')`).
		Scan(&recovery, &commit, &synchronous, &fsync, &isolation, &persistence, &standbys)
	if err != nil {
		return nil, err
	}
	rules := []rule{
		missingTable(persistence == ""),
		grave(persistence == "u", "table pawl_locks is unlogged", "exclusion and the order of tokens after a crash, which empties the table",
			"ALTER TABLE pawl_locks SET LOGGED"),
		grave(recovery, "the server is a standby", "every write", "connect to the primary (target_session_attrs=read-write)"),
		grave(fsync == "off", "fsync = off", "everything committed before a crash of the machine", "turn it on"),
		grave(commit == "off", "synchronous_commit = off", "the application's own commits after a crash; this store's statements override it",
			"set it to on for the database or role"),
		grave(standbys > 0 && synchronous == "", "standbys are asynchronous (synchronous_standby_names is empty)",
			"exclusion and the order of tokens after a failover", "name a synchronous standby, or raise guard.WithGeneration after every failover"),
		warn(synchronous != "" && (commit == "local" || commit == "remote_write"), "synchronous_commit = "+commit,
			"the application's own commits after a failover; this store's statements override it", "set it to on"),
		warn(isolation != "read committed", "default_transaction_isolation = "+isolation,
			"speed: statements on one key conflict and are tried again", "give the store sessions with read committed"),
	}
	pooled, err := postgresPooled(ctx, pool)
	return append(rules, warn(pooled, "a pooler gives one session several backends",
		"session settings and prepared statements of the application; row locks and this store do not depend on them",
		"use session pooling, or set timeouts with SET LOCAL only")), err
}

// postgresPooled reports whether a session's backend serves another session
// between two statements: behind a pooler in transaction mode the second
// session gets the backend that the first one has just left, or the first one
// finds it taken.
func postgresPooled(ctx context.Context, pool *sql.DB) (pooled bool, err error) {
	if pool.Stats().MaxOpenConnections == 1 {
		return false, nil
	}
	const backend = "SELECT pg_backend_pid()"
	conn, err := pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var first, other, second int
	if err := conn.QueryRowContext(ctx, backend).Scan(&first); err != nil {
		return false, err
	}
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if err := tx.QueryRowContext(ctx, backend).Scan(&other); err != nil || first == other {
		return err == nil, err
	}
	err = conn.QueryRowContext(ctx, backend).Scan(&second)
	return err == nil && second != first, err
}
