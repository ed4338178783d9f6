package gormstore_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/pawl-go/pawl/internal/servertest"
)

// walBehind is how many bytes of log are not on disk.
func walBehind(t *testing.T, db *gorm.DB) int {
	t.Helper()
	return ask[int](t, db, "SELECT (pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn())::bigint")
}

// A nil error is on disk, whatever the session's synchronous_commit. The server
// writes its log very seldom by itself, so that what nobody waits for shows.
func TestStore_CommitsSynchronously(t *testing.T) {
	d := postgresDB()
	server := servertest.PostgresWith(t, "-c", "wal_writer_delay=10s", "-c", "synchronous_commit=off", "-c", "autovacuum=off")
	s, db := d.migrated(t, server.Database(t))
	// What a commit writes ends at most a page header after what it flushes.
	const header = 64
	check := func(call string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if behind := walBehind(t, db); behind > header {
			t.Errorf("log behind after %s: got %d bytes, want none", call, behind)
		}
	}
	r := request("k")
	g, err := s.Acquire(t.Context(), r)
	check("Acquire", err)
	_, err = s.Acquire(t.Context(), r)
	check("Acquire repeated", err)
	_, err = s.Renew(t.Context(), g)
	check("Renew", err)
	check("Release", s.Release(t.Context(), g))
	_, err = s.Acquire(t.Context(), request("k"))
	check("Acquire of a row that is there", err)

	exec(t, db, "UPDATE pawl_locks SET seq_at = seq_at")
	if behind := walBehind(t, db); behind <= header {
		t.Errorf("log behind after a plain statement: got %d bytes, want more, or this test shows nothing", behind)
	}
	if got := ask[string](t, db, "SHOW synchronous_commit"); got != "off" {
		t.Errorf("synchronous_commit of the session afterwards: got %q, want off", got)
	}
}

// A commit can fail after the statement has returned its row.
func TestStore_AGrantThatIsNotCommittedIsNone(t *testing.T) {
	s, db := postgresDB().migrated(t, servertest.PostgresDB(t))
	exec(t, db, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not committed'; END $$`)
	exec(t, db, `CREATE CONSTRAINT TRIGGER late AFTER INSERT ON pawl_locks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	_, err := s.Acquire(t.Context(), request("k"))
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Message != "not committed" {
		t.Errorf("Acquire whose commit fails: got %v, want the server's error", err)
	}
	if g, err := s.Holder(t.Context(), "k"); err != nil || g.Owner != "" {
		t.Errorf("Holder afterwards: got %q and %v, want nobody", g.Owner, err)
	}
}

// Polling a key that is held must not load the primary with writes.
func TestStore_RefusalWritesNothing(t *testing.T) {
	s, db := postgresDB().migrated(t, servertest.PostgresDB(t))
	acquire(t, s, request("k"))
	row := func() string {
		return ask[string](t, db, "SELECT ctid::text || ' ' || xmin::text || ' ' || xmax::text FROM pawl_locks")
	}
	before := row()
	for range 3 {
		if _, err := s.Acquire(t.Context(), request("k")); !isBusy(err) {
			t.Fatalf("Acquire of a held key: got %v, want ErrBusy", err)
		}
	}
	if after := row(); after != before {
		t.Errorf("row after refusals: got %s, want %s", after, before)
	}
}
