package lease_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/lease"
	"github.com/pawl-go/pawl/internal/servertest"
)

// rule gives the sequence after (last, at), at server time now.
type rule func(last, at uint64, now time.Time) (seq, tick uint64)

func clockRule(last, at uint64, now time.Time) (seq, tick uint64) {
	tick = lease.Ticks(now)
	return lease.Next(last, at, tick), tick
}

// plainRule is the usual one, which the clock rule replaces.
func plainRule(last, _ uint64, now time.Time) (seq, tick uint64) {
	tick = uint64(now.UnixMilli())
	return max(last+1, tick), tick
}

// server gives out the grants of one key.
type server struct {
	rule     rule
	last, at uint64
	skew     time.Duration
}

func (s *server) grant(now time.Time) uint64 {
	s.last, s.at = s.rule(s.last, s.at, now.Add(s.skew))
	return s.last
}

// failover plays one young key: granted up to six times a millisecond, for up
// to two seconds, while the replica hears of it with a lag. The replica, whose
// clock is off by up to 200 ms, gives the next grant 2.3 s after the first. It
// reports whether that one is no greater than one given before.
func failover(r *rand.Rand, next rule) bool {
	start := time.UnixMicro(1_700_000_000_000_000 + r.Int64N(1_000_000))
	primary, replica := &server{rule: next}, &server{rule: next}
	replica.skew = time.Duration(r.Int64N(int64(400*time.Millisecond))) - 200*time.Millisecond
	gap := 160*time.Microsecond + time.Duration(r.ExpFloat64()*float64(2*time.Millisecond))
	busy := time.Duration(r.Int64N(int64(2 * time.Second)))
	heard := time.Duration(r.Int64N(int64(busy) + 1)) // what was granted later is lost
	var newest uint64
	for at := time.Duration(0); at <= busy; at += gap/2 + time.Duration(r.Int64N(int64(gap))) {
		newest = primary.grant(start.Add(at))
		if at <= heard {
			replica.last, replica.at = primary.last, primary.at
		}
	}
	return replica.grant(start.Add(2300*time.Millisecond)) <= newest
}

func count(times int, play func(r *rand.Rand) bool) (bad int) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
	for range times {
		if play(r) {
			bad++
		}
	}
	return bad
}

func TestNext_SurvivesFailoverToAnOlderState(t *testing.T) {
	times := servertest.Count(2_000, 100_000)
	harm := count(times, func(r *rand.Rand) bool { return failover(r, plainRule) })
	if harm == 0 {
		t.Errorf("orders turned by max(last+1, ms) in %d failovers: got 0, want some, or the simulation shows nothing", times)
	}
	if bad := count(times, func(r *rand.Rand) bool { return failover(r, clockRule) }); bad != 0 {
		t.Errorf("orders turned by the clock rule in %d failovers: got %d, want 0", times, bad)
	}
	t.Logf("max(last+1, ms) turned %d of %d orders", harm, times)
}

// wipe grants a key three times a millisecond for a minute, forgets everything,
// and grants it again a millisecond later.
func wipe(r *rand.Rand, next rule) bool {
	now := time.UnixMicro(1_700_000_000_000_000)
	s := &server{rule: next}
	for end := now.Add(time.Minute); now.Before(end); {
		s.grant(now)
		now = now.Add(time.Duration(20+r.Int64N(627)) * time.Microsecond) // 333 us apart on average
	}
	newest := s.last
	s.last, s.at = 0, 0
	return s.grant(now.Add(time.Millisecond)) <= newest
}

func TestNext_SurvivesFlushOfAHotKey(t *testing.T) {
	times := servertest.Count(5, 500)
	harm := count(times, func(r *rand.Rand) bool { return wipe(r, plainRule) })
	if harm == 0 {
		t.Errorf("orders turned by max(last+1, ms) in %d wipes: got 0, want some, or the simulation shows nothing", times)
	}
	if bad := count(times, func(r *rand.Rand) bool { return wipe(r, clockRule) }); bad != 0 {
		t.Errorf("orders turned by the clock rule in %d wipes: got %d, want 0", times, bad)
	}
}
