package gormstore_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
)

// age moves a row's times back by days, as if it were that old.
func age(t *testing.T, db *gorm.DB, key string, days int64) {
	t.Helper()
	us := days * 86400 * 1e6
	exec(t, db, "UPDATE pawl_locks SET seq = seq - ?, seq_at = seq_at - ?, expires_at = CASE WHEN expires_at < 0 THEN expires_at + ? ELSE expires_at - ? END WHERE lock_key = ?",
		us/16, us/16, us, us, []byte(key))
}

func TestStore_SweepForgetsNoOrder(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			tokens := make(map[string]fencing.Token)
			add := func(key string, days int64, given bool) {
				g := acquire(t, s, request(key))
				tokens[key] = g.Token
				if given {
					release(t, s, g)
				}
				age(t, db, key, days)
			}
			add("given back 8 days ago", 8, true)
			add("expired 8 days ago", 8, false)
			add("given back 6 days ago", 6, true)
			add("expired 6 days ago", 6, false)
			add("held", 0, false)
			add("ahead of the clock", 8, true)
			exec(t, db, "UPDATE pawl_locks SET seq = seq + ? WHERE lock_key = ?", int64(9*86400*1e6/16), []byte("ahead of the clock"))
			add("held since 8 days", 8, false)
			exec(t, db, "UPDATE pawl_locks SET expires_at = "+d.now+" + 60000000 WHERE lock_key = ?", []byte("held since 8 days"))
			exec(t, db, "INSERT INTO pawl_fences (token, resource) VALUES (?, ?)", 1, []byte("given back 8 days ago"))

			if n, err := s.Sweep(t.Context(), 0); n != 0 || err != nil {
				t.Errorf("Sweep of 0: got %d and %v, want 0 and nil", n, err)
			}
			if n, err := s.Sweep(t.Context(), 100); n != 2 || err != nil {
				t.Errorf("Sweep: got %d and %v, want 2 and nil", n, err)
			}
			if left := ask[int](t, db, "SELECT count(*) FROM pawl_locks WHERE lock_key IN ( ?, ?)", []byte("given back 8 days ago"), []byte("expired 8 days ago")); left != 0 {
				t.Errorf("rows that were free for 8 days: got %d, want 0", left)
			}
			if left := ask[int](t, db, "SELECT count(*) FROM pawl_locks"); left != 5 {
				t.Errorf("other rows: got %d, want 5", left)
			}
			if left := ask[int](t, db, "SELECT count(*) FROM pawl_fences"); left != 1 {
				t.Errorf("fences: got %d, want 1", left)
			}
			for key, token := range tokens {
				if key == "held since 8 days" || key == "held" {
					continue
				}
				if g := acquire(t, s, request(key)); g.Token <= token {
					t.Errorf("token of %q after a sweep: got %d, want more than %d", key, g.Token, token)
				}
			}
		})
	}
}

func TestStore_SweepGoesOnInPieces(t *testing.T) {
	const n = 200
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			holdMany(t, d, db, n)
			exec(t, db, "UPDATE pawl_locks SET expires_at = 5 WHERE seq = 1")
			exec(t, db, fmt.Sprintf("UPDATE pawl_locks SET expires_at = %s + 60000000 WHERE token %% 3 = 0", d.now))
			held := ask[int](t, db, "SELECT count(*) FROM pawl_locks WHERE expires_at > 5")
			if got, err := s.Sweep(t.Context(), 70); got != 70 || err != nil {
				t.Errorf("Sweep of 70: got %d and %v, want 70 and nil", got, err)
			}
			if got, err := s.Sweep(t.Context(), n); got != n-held-70 || err != nil {
				t.Errorf("Sweep of the rest: got %d and %v, want %d and nil", got, err, n-held-70)
			}
			if left := ask[int](t, db, "SELECT count(*) FROM pawl_locks"); left != held {
				t.Errorf("rows left: got %d, want the %d that are held", left, held)
			}
		})
	}
}
