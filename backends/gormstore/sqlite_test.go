package gormstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

// With a rollback journal a reader makes the commit fail after the statement has
// returned its row. It is tried again until the context ends, and granted never.
func TestStore_SQLiteReaderHoldsUpTheCommit(t *testing.T) {
	d := sqliteDB()
	dsn := "file:" + servertest.SQLiteFile(t) + "?_pragma=journal_mode(DELETE)&_pragma=busy_timeout(0)"
	s, db := d.migrated(t, dsn)
	release(t, s, acquire(t, s, request("other")))
	reader := db.Begin()
	if got := ask[int](t, reader, "SELECT count(*) FROM pawl_locks"); got != 1 {
		t.Fatalf("rows: got %d, want 1", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r := request("k")
	if g, err := s.Acquire(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire beside a reader: got token %d and %v, want the context's error", g.Token, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), r)
		done <- err
	}()
	if err := reader.Rollback().Error; err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Acquire when the reader has gone: got %v, want nil", err)
	}
}

// Writers that meet are tried again, also without a busy timeout.
func TestStore_SQLiteBusyReachesNobody(t *testing.T) {
	d := sqliteDB()
	dsn := "file:" + servertest.SQLiteFile(t) + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(0)"
	d.migrated(t, dsn)
	var wg sync.WaitGroup
	for range 6 {
		s := d.store(t, dsn)
		wg.Go(func() { cycle(t, s, servertest.Count(10, 100)) })
	}
	wg.Wait()
}

func cycle(t *testing.T, s *gormstore.Store, rounds int) {
	t.Helper()
	r := request("key of its own " + time.Now().String())
	for range rounds {
		g, err := s.Acquire(t.Context(), r)
		if err == nil {
			_, err = s.Renew(t.Context(), g)
		}
		if err == nil {
			err = s.Release(t.Context(), g)
		}
		if err != nil {
			t.Errorf("Acquire, Renew, Release of a key of one's own: got %v, want nil", err)
			return
		}
	}
}
