package gormstore

import (
	"context"
	"database/sql"
	"strings"
)

func mysqlCheck(ctx context.Context, pool *sql.DB) ([]rule, error) {
	set, err := mysqlSettings(ctx, pool)
	if err != nil {
		return nil, err
	}
	var engine string
	var standbys int
	err = pool.QueryRowContext(ctx, `SELECT
	coalesce((SELECT max(engine) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'pawl_locks'), ''),
	(SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%')`).Scan(&engine, &standbys)

	binlog := set["log_bin"] == "ON"
	lossless := set["rpl_semi_sync_master_enabled"] == "ON" || set["rpl_semi_sync_source_enabled"] == "ON"
	flush := set["innodb_flush_log_at_trx_commit"]
	readOnly := set["read_only"] != "OFF" || set["innodb_read_only"] == "ON"
	serializable := set["transaction_isolation"] == "SERIALIZABLE" || set["tx_isolation"] == "SERIALIZABLE"
	return []rule{
		missingTable(engine == "" && err == nil),
		grave(engine != "" && !strings.EqualFold(engine, "InnoDB"), "table pawl_locks has engine "+engine,
			"exclusion after a crash", "ALTER TABLE pawl_locks ENGINE = InnoDB"),
		grave(readOnly, "the server is read only", "every write", "connect to the primary"),
		grave(set["autocommit"] == "OFF", "autocommit = OFF", "every lock: Acquire fails", "leave autocommit on for the store's sessions"),
		grave(flush != "1", "innodb_flush_log_at_trx_commit = "+flush, "what was committed last before a crash", "set it to 1"),
		grave(binlog && set["sync_binlog"] != "1", "sync_binlog = "+set["sync_binlog"],
			"replicas after a crash: exclusion and the order of tokens after a failover", "set it to 1"),
		grave(binlog && set["binlog_format"] == "STATEMENT", "binlog_format = STATEMENT",
			"the order of tokens after a failover: replicas compute their own", "set it to ROW or MIXED"),
		grave(standbys > 0 && !lossless, "replicas are asynchronous",
			"exclusion and the order of tokens after a failover", "use semi-synchronous replication, or raise guard.WithGeneration after every failover"),
		warn(serializable, "isolation SERIALIZABLE", "speed: statements on one key conflict and are tried again",
			"give the store sessions with READ COMMITTED"),
	}, err
}

// mysqlSettings is the server's variables that matter, names in lower case,
// values in upper.
func mysqlSettings(ctx context.Context, pool *sql.DB) (map[string]string, error) {
	set := make(map[string]string)
	err := query(ctx, pool, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		set[strings.ToLower(name)] = strings.ToUpper(value)
		return err
	}, `SHOW VARIABLES WHERE Variable_name IN ('autocommit', 'binlog_format', 'innodb_flush_log_at_trx_commit', 'innodb_read_only',
	'log_bin', 'read_only', 'sync_binlog', 'transaction_isolation', 'tx_isolation',
	'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')`)
	return set, err
}
