package gormstore_test

import (
	"strconv"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/lease"
)

// order is what a row remembers of its last grant.
type order struct {
	Token, Seq, SeqAt, ExpiresAt int64
}

func orderOf(t *testing.T, db *gorm.DB, key string) order {
	t.Helper()
	var o order
	err := db.Raw("SELECT token, seq, seq_at, expires_at FROM pawl_locks WHERE lock_key = ?", []byte(key)).Scan(&o).Error
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestStore_NumbersHoldersByTheClockRule(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			before := lease.Ticks(time.Now())
			g := acquire(t, s, request("k"))
			first := orderOf(t, db, "k")
			slack := lease.Ticks(time.UnixMicro(2000)) // SQLite's clock counts milliseconds
			if after := lease.Ticks(time.Now()); uint64(first.Seq) < before-slack || uint64(first.Seq) > after+slack {
				t.Errorf("first sequence number: got %d, want the time, %d to %d", first.Seq, before, after)
			}
			if first.Seq != first.SeqAt {
				t.Errorf("first sequence number: got %d at %d, want them equal", first.Seq, first.SeqAt)
			}
			release(t, s, g)

			// Each shift is of seq and seq_at against the clock: a store that ran ahead, whose clock stepped, that was restored.
			for _, shift := range [][2]int64{{0, 0}, {1e9, 0}, {1e9, -1e6}, {0, 1e9}, {-1e6, -1e6}, {-1e6, -1e3}, {1e6, 1e6}} {
				exec(t, db, "UPDATE pawl_locks SET seq = ?, seq_at = ?", first.Seq+shift[0], first.SeqAt+shift[1])
				old := orderOf(t, db, "k")
				r := request("k")
				r.Generation = 5
				g := acquire(t, s, r)
				got := orderOf(t, db, "k")
				if want := lease.Next(uint64(old.Seq), uint64(old.SeqAt), uint64(got.SeqAt)); uint64(got.Seq) != want {
					t.Errorf("sequence number after %d at %d, granted at %d: got %d, want %d", old.Seq, old.SeqAt, got.SeqAt, got.Seq, want)
				}
				if want, err := fencing.NewToken(5, uint64(got.Seq)); err != nil || g.Token != want || got.Token != int64(want) {
					t.Errorf("token of sequence number %d: got %d in the grant and %d in the row, want %d (%v)", got.Seq, g.Token, got.Token, want, err)
				}
				release(t, s, g)
			}
		})
	}
}

func TestStore_RefusesATokenThatIsNotGreater(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			r := request("k")
			r.Generation = 2
			release(t, s, acquire(t, s, r))
			before := orderOf(t, db, "k")

			r = request("k")
			r.Generation = 1
			g, err := s.Acquire(t.Context(), r)
			if err == nil || isVerdict(err) {
				t.Errorf("Acquire of a lower generation: got token %d and %v, want an error that is no verdict", g.Token, err)
			}
			if after := orderOf(t, db, "k"); after != before {
				t.Errorf("row after a refusal: got %+v, want %+v", after, before)
			}
			r.Generation = 2
			acquire(t, s, r)
		})
	}
}

func TestStore_NeverWrapsASequence(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			release(t, s, acquire(t, s, request("k")))
			exec(t, db, "UPDATE pawl_locks SET seq = ?", int64(1)<<48-1)
			r := request("k")
			if g, err := s.Acquire(t.Context(), r); err == nil || isVerdict(err) {
				t.Errorf("Acquire past the last sequence number: got token %d and %v, want an error that is no verdict", g.Token, err)
			}
		})
	}
}

// The clock is UTC whatever the session says, also in the hour that a zone has
// twice.
func TestStore_IgnoresTheSessionsZone(t *testing.T) {
	zones := map[string][]string{
		"PostgreSQL": {"&timezone=Pacific/Kiritimati", "&timezone=America/New_York", "&timezone=Europe/Berlin"},
		"MariaDB":    {"&time_zone=%27%2B13:00%27", "&time_zone=%27-12:00%27&loc=Asia%2FTokyo&parseTime=true"},
	}
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			want := acquire(t, s, request("k"))
			for i, zone := range append(zones[d.name], "") {
				there := d.store(t, dsn+zone)
				if _, err := there.Acquire(t.Context(), request("k")); !isBusy(err) {
					t.Errorf("Acquire in zone %q: got %v, want ErrBusy", zone, err)
				}
				if _, err := there.Renew(t.Context(), want); err != nil {
					t.Errorf("Renew in zone %q: got %v, want nil", zone, err)
				}
				key := "k" + strconv.Itoa(i)
				acquire(t, there, request(key))
				o := orderOf(t, db, key)
				if off := time.UnixMicro(o.ExpiresAt).Sub(time.Now().Add(time.Minute)).Abs(); off > 10*time.Second {
					t.Errorf("end of a lease of a minute made in zone %q: got %v off, want it in UTC", zone, off)
				}
			}
		})
	}
}

// What was promised is not taken back by a shorter TTL or by a statement that
// began earlier.
func TestStore_RenewTakesNothingBack(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			g := acquire(t, s, request("k"))
			before := orderOf(t, db, "k")
			short := g
			short.TTL = time.Second
			if _, err := s.Renew(t.Context(), short); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Acquire(t.Context(), short.Request); err != nil {
				t.Fatal(err)
			}
			if after := orderOf(t, db, "k"); after != before {
				t.Errorf("row after a shorter renewal: got %+v, want %+v", after, before)
			}
		})
	}
}
