package gormstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
)

// A session's settings change how statements are sent, typed and assigned, not
// what they do.
func TestStore_WorksInEverySession(t *testing.T) {
	for _, test := range []struct {
		name string
		d    database
		with string
	}{
		{"PostgresSimpleProtocol", postgresDB(), "&default_query_exec_mode=simple_protocol"},
		{"PostgresDescribes", postgresDB(), "&default_query_exec_mode=exec"},
		{"PostgresNoCommitWait", postgresDB(), "&synchronous_commit=off"},
		{"PostgresRemoteApply", postgresDB(), "&synchronous_commit=remote_apply"},
		{"MariaDBPrepares", mariaDB(), "&interpolateParams=false"},
		{"MariaDBFoundRows", mariaDB(), "&clientFoundRows=true"},
		{"MariaDBNotStrict", mariaDB(), "&sql_mode=%27%27"},
		{"MariaDBSimultaneous", mariaDB(), "&sql_mode=%27SIMULTANEOUS_ASSIGNMENT,ANSI,STRICT_ALL_TABLES,NO_UNSIGNED_SUBTRACTION%27"},
		{"MariaDBOracle", mariaDB(), "&sql_mode=%27ORACLE%27"},
		{"MariaDBNoBackslash", mariaDB(), "&interpolateParams=false&sql_mode=%27NO_BACKSLASH_ESCAPES%27"},
		{"MariaDBLatin1", mariaDB(), "&interpolateParams=false&charset=latin1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dsn := test.d.empty(t)
			test.d.migrated(t, dsn)
			if strings.Contains(test.with, "interpolateParams") {
				dsn = strings.ReplaceAll(dsn, "&interpolateParams=true", "")
			}
			liveAndDie(t, test.d.store(t, dsn+test.with))
		})
	}
}

// liveAndDie takes a key through each transition of its row.
func liveAndDie(t *testing.T, s *gormstore.Store) {
	t.Helper()
	ctx := t.Context()
	const key = "k\u00e9y\\'\x00 "
	a := request(key)
	first := acquire(t, s, a)
	if again := acquire(t, s, a); again.Token != first.Token {
		t.Errorf("token of a repeated Acquire: got %d, want %d", again.Token, first.Token)
	}
	if _, err := s.Acquire(ctx, request(key)); !isBusy(err) {
		t.Errorf("Acquire of a held key: got %v, want ErrBusy", err)
	}
	if _, err := s.Renew(ctx, first); err != nil {
		t.Errorf("Renew: got %v, want nil", err)
	}
	if g, err := s.Holder(ctx, key); err != nil || g.Owner != a.Owner || g.Token != first.Token {
		t.Errorf("Holder: got %q, %d and %v, want %q, %d and nil", g.Owner, g.Token, err, a.Owner, first.Token)
	}
	release(t, s, first)
	if _, err := s.Renew(ctx, first); !isLost(err) {
		t.Errorf("Renew after Release: got %v, want ErrLost", err)
	}
	b := request(key)
	b.TTL = 50 * time.Millisecond
	second := acquire(t, s, b)
	if second.Token <= first.Token {
		t.Errorf("token of the next holder: got %d, want more than %d", second.Token, first.Token)
	}
	release(t, s, first) // a repetition: nothing happens
	if err := s.Release(ctx, driver.Grant{Request: request(key)}); !isLost(err) {
		t.Errorf("Release by a stranger: got %v, want ErrLost", err)
	}
	time.Sleep(60 * time.Millisecond) // of the server's clock
	if err := s.Release(ctx, second); !isLost(err) {
		t.Errorf("Release after expiry: got %v, want ErrLost", err)
	}
	third := acquire(t, s, a)
	if third.Token <= second.Token {
		t.Errorf("token after an expiry: got %d, want more than %d", third.Token, second.Token)
	}
	if err := s.Release(ctx, first); !isLost(err) {
		t.Errorf("Release of the first hold of an owner in its second: got %v, want ErrLost", err)
	}
	if _, err := s.Acquire(ctx, request(key)); !isBusy(err) {
		t.Errorf("Acquire of a held key: got %v, want ErrBusy", err)
	}
	release(t, s, driver.Grant{Request: a})
	acquire(t, s, request(key))
}

// Without autocommit a statement would never be committed, and its row would
// stay locked. Nothing is granted then.
func TestStore_RefusesASessionWithoutAutocommit(t *testing.T) {
	d := mariaDB()
	for _, interpolate := range []string{"", "&interpolateParams=false"} {
		dsn := d.empty(t)
		good, _ := d.migrated(t, dsn)
		g := acquire(t, good, request("held"))
		release(t, good, g)
		if interpolate != "" {
			dsn = strings.ReplaceAll(dsn, "&interpolateParams=true", interpolate)
		}
		s := d.store(t, dsn+"&autocommit=0")
		for _, key := range []string{"new", "held"} {
			_, err := s.Acquire(t.Context(), request(key))
			if err == nil || !strings.Contains(err.Error(), "autocommit") {
				t.Errorf("Acquire without autocommit: got %v, want an error that names it", err)
			}
			acquire(t, good, request(key)) // no lock is left
		}
	}
}
