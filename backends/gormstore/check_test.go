package gormstore_test

import (
	"slices"
	"strings"
	"testing"

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
	onEach(t, func(t *testing.T, d database, dsn string) {
		db := d.connect(t, dsn)
		wantFound(t, storeOn(t, db), "!table pawl_locks is missing")
		s, _ := d.migrated(t, dsn)
		wantFound(t, s)
	})
}

func TestStore_CheckReportsThatItCouldNotLook(t *testing.T) {
	onEach(t, func(t *testing.T, d database, dsn string) {
		s, db := d.migrated(t, dsn)
		if err := pool(t, db).Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Check(t.Context()); err == nil {
			t.Error("Check of a closed pool: got nil, want an error")
		}
	})
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
