package servertest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"
)

// dialect is how a database server is talked to.
type dialect struct {
	template string // DSN, with %s for the database
	admin    string // a database that is always there, or ""
	open     func(dsn string) (*sql.DB, error)
	drop     func(ctx context.Context, admin *sql.DB, name string) error
}

// DSN is for a database that exists. It is "" unless the server is a database.
func (s *Server) DSN(database string) string {
	if s.sql == nil {
		return ""
	}
	return strings.Replace(s.sql.template, "%s", database, 1)
}

// Database makes an empty database on the server and returns its DSN. Cleanup drops
// it, whatever connections are left in it.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	if s.sql == nil {
		t.Fatal("servertest: the server is not a database")
	}
	name := "pawl_" + strings.ToLower(rand.Text()[:12])
	err := s.asAdmin(func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE DATABASE "+name)
		return err
	})
	if err != nil {
		t.Fatalf("making a database: %v", err)
	}
	t.Cleanup(func() {
		drop := func(ctx context.Context, db *sql.DB) error { return s.sql.drop(ctx, db, name) }
		if err := errors.Join(s.revive(), s.asAdmin(drop)); err != nil {
			t.Errorf("dropping the database: %v", err)
		}
	})
	return s.DSN(name)
}

func (s *Server) asAdmin(do func(context.Context, *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	db, err := s.sql.open(s.DSN(s.sql.admin))
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, db), db.Close())
}

// revive makes a server usable that a test left paused or dead.
func (s *Server) revive() error {
	if s.process == nil {
		return nil
	}
	return s.process.revive()
}

// ping is true to what a test will do: connect and execute.
func (d *dialect) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	db, err := d.open(strings.Replace(d.template, "%s", d.admin, 1))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "SELECT 1")
	return errors.Join(err, db.Close())
}

// external is the server at a DSN template from the environment.
func external(t testing.TB, variable, template string, d *dialect, addr func(dsn string) (string, error)) *Server {
	t.Helper()
	if strings.Count(template, "%s") != 1 {
		t.Fatalf("%s=%q has to have one %%s, for the database", variable, template)
	}
	d.template = template
	s := &Server{t: t, sql: d}
	host, err := addr(s.DSN(d.admin))
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	if err := d.ping(t.Context()); err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	s.Addr = host
	return s
}
