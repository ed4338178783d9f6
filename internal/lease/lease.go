// Package lease holds the two rules of time that every store keeps: when a
// grant ends for its holder, and which sequence number the next one gets.
package lease

import "time"

// Tick is the unit of the clock rule.
const Tick = 16 * time.Microsecond

// Until is the local deadline of a grant: the send time of the request that
// really renewed, plus the TTL in force, less a margin (TTL/20 + 5 ms) for
// clocks that do not run at one rate. Counting from the reply instead would let
// a slow reply outlive the lease.
func Until(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - Margin(ttl))
}

// Margin is what [Until] takes off.
func Margin(ttl time.Duration) time.Duration { return ttl/20 + 5*time.Millisecond }

// Ticks is t as a sequence number.
func Ticks(t time.Time) uint64 { return uint64(t.UnixMicro()) / uint64(Tick/time.Microsecond) }

// Next is the clock rule: the sequence number that follows last, which was
// granted at tick at, for a grant at tick now. It grows at least with the clock,
// so it also grows when last and at were wiped or rolled back by less than has
// passed since; and at least by one, so it grows when the clock stands still.
func Next(last, at, now uint64) uint64 {
	step := uint64(1)
	if now > at+1 {
		step = now - at
	}
	return max(now, last+step)
}
