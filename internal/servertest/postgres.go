package servertest

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Postgres is the PostgreSQL server that the tests of this process share, or the one
// of PAWL_TEST_POSTGRES. A test that pauses or kills it must not run beside others;
// it is revived before the next test that asks for it. See [PostgresWith].
func Postgres(t testing.TB) *Server {
	t.Helper()
	if template := os.Getenv("PAWL_TEST_POSTGRES"); template != "" {
		return external(t, "PAWL_TEST_POSTGRES", template, postgresDialect(""), postgresAddr)
	}
	return servers.get(t, postgresEngine(t))
}

// PostgresDB is the DSN (an URL) of an empty database of the test's own on
// [Postgres], dropped at cleanup.
func PostgresDB(t testing.TB) string {
	t.Helper()
	return Postgres(t).Database(t)
}

// PostgresWith starts a server of the test's own with more arguments, such as
// "-c", "synchronous_commit=off", in about half a second.
func PostgresWith(t testing.TB, args ...string) *Server {
	t.Helper()
	return servers.private(t, postgresEngine(t), args)
}

func postgresEngine(t testing.TB) engine {
	t.Helper()
	server := binary(t, "postgres", "/usr/lib/postgresql/*/bin/postgres")
	target, err := filepath.EvalSymlinks(server) // initdb is beside it
	if err != nil {
		t.Fatal(err)
	}
	initdb := binary(t, filepath.Join(filepath.Dir(target), "initdb"))
	return engine{
		recipe: recipe{
			name: "postgres", server: server, as: postgresUser(t),
			command: func(dir string) []string {
				return []string{
					initdb, "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale",
					"--no-sync", "--no-instructions", "--wal-segsize=1",
				}
			},
		},
		command: func(dir string, listen *port, args []string) command {
			return command{path: server, term: syscall.SIGINT, args: append([]string{ // SIGTERM would wait for clients
				"-D", filepath.Join(dir, "data"), "-p", listen.String(), "-h", "127.0.0.1", "-c", "unix_socket_directories=",
				"-c", "max_connections=300", "-c", "shared_buffers=32MB",
			}, args...)}
		},
		dialect: postgresDialect,
	}
}

// postgresUser is who the server runs as: it refuses root, and anybody else runs it
// as himself.
func postgresUser(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	unavailable(t, "PostgreSQL does not run as root and there is no user postgres or nobody")
	return nil
}

func postgresDialect(addr string) *dialect {
	return &dialect{
		template: fmt.Sprintf("postgres://postgres@%s/%%s?sslmode=disable", addr),
		admin:    "postgres",
		open: func(dsn string) (*sql.DB, error) {
			config, err := pgx.ParseConfig(dsn)
			if err != nil {
				return nil, err
			}
			return stdlib.OpenDB(*config), nil
		},
		drop: func(ctx context.Context, admin *sql.DB, name string) error {
			_, err := admin.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
			return err
		},
	}
}

func postgresAddr(dsn string) (string, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), nil
}
