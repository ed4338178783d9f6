// Package redisstore keeps locks in Redis, through go-redis v9: a single server,
// Sentinel or Cluster, whatever client it is given.
//
// Redis replicates asynchronously and keeps time by one server's clock, so two
// processes can hold one lock after a failover or a clock step. The tokens of
// their grants still differ and grow, so what is fenced stays right; see [Fence].
//
// For each lock Redis holds two keys: the lock, which ends with its lease, and
// its order, which ends seven days after the last use. An acquire and a release
// are one script each, and concurrent calls share a pipeline. Scripts are
// harmless when they run twice, since go-redis sends a script again whose reply
// was lost.
package redisstore

import (
	_ "embed"
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/internal/batch"
)

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string
	//go:embed holder.lua
	holderSource string
)

// Store keeps locks in Redis. It implements [driver.Locker], [driver.Waiter],
// [driver.Viewer] and [driver.Checker] and is safe for concurrent use.
//
// A store is passive: it has a goroutine or a subscription only while a call is
// under way, and it never closes its client.
type Store struct {
	client redis.UniversalClient
	bell   *bell

	acquire, renew, release, holder *batch.Lane[call, reply] // apart, so that none waits behind another
}

var (
	_ driver.Waiter  = (*Store)(nil)
	_ driver.Viewer  = (*Store)(nil)
	_ driver.Checker = (*Store)(nil)
)

// New returns a store on client, which it neither dials now nor ever closes. A
// [redis.Ring] is refused: it serves the keys of a shard that stops answering from
// another shard, where nobody holds anything.
func New(client redis.UniversalClient) (*Store, error) {
	if missing(client) {
		return nil, errors.New("redisstore: New: the client is nil")
	}
	if _, ok := client.(*redis.Ring); ok {
		return nil, errors.New("redisstore: New: a Ring grants a lock twice when it moves keys away from a shard; use Cluster")
	}
	s := &Store{client: client, bell: newBell(client)}
	s.acquire, s.renew = s.lane(acquireSource), s.lane(renewSource)
	s.release, s.holder = s.lane(releaseSource), s.lane(holderSource)
	return s, nil
}

// missing also finds a nil pointer in a client that is not nil.
func missing(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Traits implements [driver.Backend].
func (s *Store) Traits() driver.Traits {
	if s.client == nil {
		return driver.Traits{} // not made by New: guard refuses it
	}
	return driver.Traits{Name: "redis", Consistency: driver.Async, MinTTL: minTTL}
}
