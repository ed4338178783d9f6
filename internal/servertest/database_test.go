package servertest_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/internal/servertest"
)

// databases are the servers that the tests below ask the same questions.
var databases = []struct {
	name, driver string
	shared       func(testing.TB) *servertest.Server
	db           func(testing.TB) string
	with         func(testing.TB, ...string) *servertest.Server
	setting      []string // an argument
	show, want   string   // and what proves it
	fsync        string   // must be on: tests of durability rely on it
}{
	{
		name: "Postgres", driver: "pgx", shared: servertest.Postgres, db: servertest.PostgresDB, with: servertest.PostgresWith,
		setting: []string{"-c", "synchronous_commit=off"}, show: "SHOW synchronous_commit", want: "off", fsync: "SHOW fsync",
	},
	{
		name: "MariaDB", driver: "mysql", shared: servertest.MariaDB, db: servertest.MariaDBDB, with: servertest.MariaDBWith,
		setting: []string{"--innodb-flush-log-at-trx-commit=0"}, show: "SELECT @@innodb_flush_log_at_trx_commit", want: "0",
		fsync: "SELECT IF(@@innodb_flush_log_at_trx_commit = 1, 'on', 'off')",
	},
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func one(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var got string
	if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

func TestDatabase_IsTheTestsOwn(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			first, second := d.db(t), d.db(t)
			if first == second {
				t.Fatalf("got %s twice", first)
			}
			execute(t, open(t, d.driver, first), "CREATE TABLE a (id INT)")
			execute(t, open(t, d.driver, second), "CREATE TABLE a (id INT)")
			if got := one(t, open(t, d.driver, first), d.fsync); got != "on" {
				t.Errorf("got durability %q, want on", got)
			}
		})
	}
}

func TestDatabase_IsDroppedUnderAnOpenTransaction(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			var dsn string
			t.Run("Inner", func(inner *testing.T) {
				dsn = d.db(inner)
				db := open(t, d.driver, dsn) // outlives inner
				execute(t, db, "CREATE TABLE a (id INT)")
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback() }) // its connection is gone by then
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO a VALUES (1)"); err != nil {
					t.Fatal(err)
				}
			})
			if err := open(t, d.driver, dsn).PingContext(t.Context()); err == nil {
				t.Error("got a connection to a database that was dropped")
			}
		})
	}
}

func TestDatabase_PausesWithItsConnections(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := d.shared(t)
			db := open(t, d.driver, s.Database(t))
			execute(t, db, "SELECT 1") // the connection is open, PostgreSQL has a process for it
			s.Pause()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := db.ExecContext(ctx, "SELECT 1"); err == nil {
				t.Error("got an answer of a paused server")
			}
			s.Resume()
			execute(t, db, "SELECT 1")
		})
	}
}

func TestDatabase_KeepsWhatWasCommittedWhenKilled(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := d.shared(t)
			dsn := s.Database(t)
			db := open(t, d.driver, dsn)
			execute(t, db, "CREATE TABLE a (id INT)")
			execute(t, db, "INSERT INTO a VALUES (7)")
			s.Kill()
			s.Restart(t)
			if got := one(t, open(t, d.driver, dsn), "SELECT id FROM a"); got != "7" {
				t.Errorf("got %s, want 7", got)
			}
			s.Kill() // the next test finds it running
		})
		t.Run(d.name+"After", func(t *testing.T) {
			execute(t, open(t, d.driver, d.db(t)), "SELECT 1")
		})
	}
}

func TestDatabase_WithHasItsArgumentsAndLeavesNoFiles(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			var addr string
			t.Run("Inner", func(t *testing.T) {
				s := d.with(t, d.setting...)
				addr = s.Addr
				if got := one(t, open(t, d.driver, s.Database(t)), d.show); got != d.want {
					t.Errorf("%s: got %s, want %s", d.show, got, d.want)
				}
				s.Pause() // cleanup must end a stopped server, too
			})
			if shared := d.shared(t); shared.Addr == addr {
				t.Errorf("got the address %s of the shared server", addr)
			}
		})
	}
}

func TestSQLProxy_LosesTheReplyOfACommit(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.db(t)
			p, through := servertest.NewSQLProxy(t, dsn)
			db := open(t, d.driver, through)
			execute(t, db, "CREATE TABLE a (id INT)")
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO a VALUES (7)"); err != nil {
				t.Fatal(err)
			}
			p.DropReplyAfter([]byte("COMMIT")) // pgx says commit, go-sql-driver COMMIT
			if d.driver == "pgx" {
				p.DropReplyAfter([]byte("commit"))
			}
			if err := tx.Commit(); err == nil {
				t.Fatal("got the reply of a commit that was dropped")
			}
			await(t, p.Dropped())
			if got := one(t, open(t, d.driver, dsn), "SELECT id FROM a"); got != "7" {
				t.Errorf("got %s, want 7: the commit was to arrive", got)
			}
		})
	}
}

func TestSQLiteFile_DoesNotExistYet(t *testing.T) {
	if _, err := os.Stat(servertest.SQLiteFile(t)); !os.IsNotExist(err) {
		t.Errorf("got %v, want no such file", err)
	}
}
