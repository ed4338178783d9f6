package servertest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is the MariaDB server that the tests of this process share, or the one of
// PAWL_TEST_MARIADB. A test that pauses or kills it must not run beside others; it is
// revived before the next test that asks for it. See [MariaDBWith].
func MariaDB(t testing.TB) *Server {
	t.Helper()
	if template := os.Getenv("PAWL_TEST_MARIADB"); template != "" {
		return external(t, "PAWL_TEST_MARIADB", template, mariadbDialect(""), mariadbAddr)
	}
	return servers.get(t, mariadbEngine(t))
}

// MariaDBDB is the DSN of an empty database of the test's own on [MariaDB], dropped
// at cleanup.
func MariaDBDB(t testing.TB) string {
	t.Helper()
	return MariaDB(t).Database(t)
}

// MariaDBWith starts a server of the test's own with more arguments, such as
// "--innodb-flush-log-at-trx-commit=0", in about a second.
func MariaDBWith(t testing.TB, args ...string) *Server {
	t.Helper()
	return servers.private(t, mariadbEngine(t), args)
}

func mariadbEngine(t testing.TB) engine {
	t.Helper()
	server := binary(t, "mariadbd", "/usr/sbin/mariadbd")
	install := binary(t, "mariadb-install-db")
	return engine{
		recipe: recipe{name: "mariadb", server: server, command: func(dir string) []string {
			return append([]string{
				install, "--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal",
				"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M",
			}, mariadbUser()...)
		}},
		command: func(dir string, listen *port, args []string) command {
			all := append([]string{
				"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--port=" + listen.String(), "--bind-address=127.0.0.1",
				"--socket=s.sock", // in datadir: a whole path may be too long for a socket
				"--pid-file=" + filepath.Join(dir, "pid"), "--tmpdir=" + dir,
				"--skip-log-bin", "--skip-name-resolve", "--character-set-server=utf8mb4",
				"--max-connections=300", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
			}, mariadbUser()...)
			return command{path: server, term: syscall.SIGTERM, args: append(all, args...)}
		},
		dialect: mariadbDialect,
	}
}

// mariadbUser is what makes the server run as root.
func mariadbUser() []string {
	if os.Getuid() != 0 {
		return nil
	}
	return []string{"--user=root"}
}

func mariadbDialect(addr string) *dialect {
	return &dialect{
		template: fmt.Sprintf("root@tcp(%s)/%%s?parseTime=true", addr),
		open: func(dsn string) (*sql.DB, error) {
			config, err := mysql.ParseDSN(dsn)
			if err != nil {
				return nil, err
			}
			config.Logger = &mysql.NopLogger{} // a server that starts breaks connections
			connector, err := mysql.NewConnector(config)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(connector), nil
		},
		drop: dropMariaDB,
	}
}

// dropMariaDB first ends the connections that a test left in the database: a
// transaction that is open in one of them would block the drop for a day.
func dropMariaDB(ctx context.Context, admin *sql.DB, name string) error {
	rows, err := admin.QueryContext(ctx, "SELECT id FROM information_schema.processlist WHERE db = ?", name)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, id := range ids {
		_, _ = admin.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // it may have left
	}
	_, err = admin.ExecContext(ctx, "DROP DATABASE "+name)
	return err
}

func mariadbAddr(dsn string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	return config.Addr, nil
}
