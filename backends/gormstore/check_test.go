package gormstore_test

import (
	sqldriver "database/sql/driver"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

// found returns the settings that Check names, grave ones with a "!".
func found(t *testing.T, s *gormstore.Store) []string {
	t.Helper()
	hazards, err := s.Check(t.Context())
	if err != nil {
		t.Fatalf("Check: got %v, want nil", err)
	}
	names := []string{}
	for _, h := range hazards {
		if h.Store != s.Traits().Name || h.Setting == "" || h.Breaks == "" || h.Fix == "" {
			t.Errorf("hazard: got %+v, want it whole and of %s", h, s.Traits().Name)
		}
		names = append(names, map[bool]string{true: "!"}[h.Grave]+h.Setting)
	}
	slices.Sort(names)
	return names
}

func wantFound(t *testing.T, s *gormstore.Store, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := found(t, s); !slices.Equal(got, want) {
		t.Errorf("hazards: got %q, want %q", got, want)
	}
}

func TestStore_CheckOfAGoodDatabaseFindsNothing(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			db := d.connect(t, dsn)
			wantFound(t, storeOn(t, db), "!table pawl_locks is missing")
			s, _ := d.migrated(t, dsn)
			wantFound(t, s)
		})
	}
}

func TestStore_CheckReportsThatItCouldNotLook(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			if err := pool(t, db).Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Check(t.Context()); err == nil {
				t.Error("Check of a closed pool: got nil, want an error")
			}
		})
	}
}

func TestStore_CheckNamesPostgresSettings(t *testing.T) {
	d := postgresDB()
	server := servertest.PostgresWith(t, "-c", "fsync=off", "-c", "wal_level=replica", "-c", "max_wal_senders=4")
	dsn := server.Database(t)
	s, db := d.migrated(t, dsn)
	wantFound(t, s, "!fsync = off")

	exec(t, db, "ALTER TABLE pawl_locks SET UNLOGGED")
	with := d.store(t, dsn+"&synchronous_commit=off&default_transaction_isolation=serializable")
	wantFound(t, with, "!fsync = off", "!table pawl_locks is unlogged", "!synchronous_commit = off", "default_transaction_isolation = serializable")
	exec(t, db, "ALTER TABLE pawl_locks SET LOGGED")

	one := d.connect(t, dsn)
	pool(t, one).SetMaxOpenConns(1)
	wantFound(t, storeOn(t, one), "!fsync = off")
}

func TestStore_CheckNamesMySQLSettings(t *testing.T) {
	d := mariaDB()
	server := servertest.MariaDBWith(t, "--log-bin=log", "--server-id=1", "--binlog-format=STATEMENT",
		"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")
	dsn := server.Database(t)
	s, db := d.migrated(t, dsn)
	durability := []string{"!innodb_flush_log_at_trx_commit = 2", "!sync_binlog = 0", "!binlog_format = STATEMENT"}
	wantFound(t, s, durability...)
	wantFound(t, d.store(t, dsn+"&autocommit=0&tx_isolation=%27SERIALIZABLE%27"),
		append(durability, "!autocommit = OFF", "isolation SERIALIZABLE")...)

	exec(t, db, "ALTER TABLE pawl_locks ENGINE = Aria")
	exec(t, db, "SET GLOBAL read_only = ON")
	defer exec(t, db, "SET GLOBAL read_only = OFF")
	wantFound(t, s, append(durability, "!table pawl_locks has engine Aria", "!the server is read only")...)
}

// What receives the log as a standby does.
func TestStore_CheckNamesAsynchronousStandbys(t *testing.T) {
	d := postgresDB()
	server := servertest.PostgresWith(t, "-c", "wal_level=replica", "-c", "max_wal_senders=4")
	dsn := server.Database(t)
	s, db := d.migrated(t, dsn)
	standby, err := pgconn.Connect(t.Context(), dsn+"&replication=true")
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close(t.Context())
	standby.Frontend().Send(&pgproto3.Query{String: "START_REPLICATION PHYSICAL 0/1000000"})
	if err := standby.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := standby.Frontend().Receive(); err != nil { // it streams
		t.Fatal(err)
	}
	wantFound(t, s, "!standbys are asynchronous (synchronous_standby_names is empty)")

	exec(t, db, "ALTER SYSTEM SET synchronous_standby_names = 'other'")
	exec(t, db, "SELECT pg_reload_conf()")
	for ask[string](t, d.connect(t, dsn), "SHOW synchronous_standby_names") == "" {
		time.Sleep(time.Millisecond)
	}
	wantFound(t, d.store(t, dsn+"&synchronous_commit=local"), "synchronous_commit = local")
	exec(t, db, "ALTER SYSTEM RESET synchronous_standby_names") // or the clean-up would wait for that standby
	exec(t, db, "SELECT pg_reload_conf()")
}

func TestStore_CheckNamesAsynchronousReplicas(t *testing.T) {
	d := mariaDB()
	server := servertest.MariaDBWith(t, "--log-bin=log", "--server-id=1", "--sync-binlog=1", "--binlog-format=ROW")
	s, _ := d.migrated(t, server.Database(t))
	wantFound(t, s)
	replica := servertest.MariaDBWith(t, "--server-id=2")
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	there := d.connect(t, replica.DSN(""))
	exec(t, there, "CHANGE MASTER TO MASTER_HOST = '"+host+"', MASTER_PORT = "+port+", MASTER_USER = 'root'")
	exec(t, there, "START SLAVE")
	defer exec(t, there, "STOP SLAVE")
	for end := time.Now().Add(10 * time.Second); len(found(t, s)) == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	wantFound(t, s, "!replicas are asynchronous")
}

// A pooler in transaction mode gives a backend to whoever has a statement.
func TestStore_CheckNamesAPooler(t *testing.T) {
	d := postgresDB()
	dsn := d.empty(t)
	d.migrated(t, dsn)
	db, spy := d.watched(t, dsn)
	pool(t, db).SetMaxIdleConns(0) // the next connection is the spy's to make
	backend, err := spy.drv.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	spy.open = func() (sqldriver.Conn, error) { return shared{backend}, nil }
	wantFound(t, storeOn(t, db), "a pooler gives one session several backends")
}

// shared is a session that does not own its backend.
type shared struct{ sqldriver.Conn }

func (shared) Close() error { return nil }

func TestStore_CheckNamesSQLiteSettings(t *testing.T) {
	d := sqliteDB()
	file := func(pragmas string) *gormstore.Store {
		s, _ := d.migrated(t, "file:"+servertest.SQLiteFile(t)+"?"+pragmas)
		return s
	}
	wantFound(t, file("_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(0)"), "!synchronous = NORMAL", "busy_timeout = 0")
	wantFound(t, file("_pragma=journal_mode(DELETE)&_pragma=synchronous(OFF)"), "!synchronous = OFF", "journal_mode = delete")
	wantFound(t, file("_pragma=journal_mode(OFF)"), "!journal_mode = off")
	wantFound(t, file("_pragma=journal_mode(MEMORY)"), "!journal_mode = memory")

	memory, _ := d.migrated(t, "file:check?mode=memory&cache=shared")
	if got := found(t, memory); !slices.Contains(got, "!the database is in memory") {
		t.Errorf("hazards of a database in memory: got %q, want it named", got)
	}
}

func TestHazard_ReadsAsOneLine(t *testing.T) {
	s := sqliteDB().store(t, "file::memory:")
	hazards, err := s.Check(t.Context())
	if err != nil || len(hazards) == 0 {
		t.Fatalf("Check: got %v and %v, want hazards", hazards, err)
	}
	for _, h := range hazards {
		if line := h.String(); strings.Contains(line, "\n") || !strings.HasPrefix(line, "grave: sqlite: ") {
			t.Errorf("hazard: got %q, want one line", line)
		}
	}
}
