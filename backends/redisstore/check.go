package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
)

const (
	oldestMajor, oldestMinor = 7, 0 // the oldest version that the tests run on

	// clockSlack is how far a server's clock may be from ours. Tokens keep growing through a failover while the clocks of
	// old and new primary differ by less than the failover takes: 2.3 s at the shortest.
	clockSlack = time.Second
)

// Check implements [driver.Checker]. It asks each primary for INFO, and needs the
// permission for that.
func (s *Store) Check(ctx context.Context) ([]driver.Hazard, error) {
	var found findings
	err := s.eachNode(ctx, func(ctx context.Context, node redis.Cmdable, addr string) error {
		sent := time.Now()
		text, err := node.Info(ctx).Result()
		if err != nil {
			return fmt.Errorf("redisstore: check: INFO%s: %w", addr, err)
		}
		hazards, err := examine(parseInfo(text), sent, time.Now())
		found.add(hazards, addr)
		if err != nil {
			return fmt.Errorf("redisstore: check: INFO%s: %w", addr, err)
		}
		return nil
	})
	return found.list(), err
}

// eachNode visits every primary; addr is "" if there is only one.
func (s *Store) eachNode(ctx context.Context, visit func(ctx context.Context, node redis.Cmdable, addr string) error) error {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			return visit(ctx, c, " at "+c.Options().Addr)
		})
	}
	return visit(ctx, s.client, "")
}

// findings merges what the nodes, which are visited at the same time, have in
// common.
type findings struct {
	mu      sync.Mutex
	hazards []driver.Hazard
	where   []string // the first node of each hazard
}

func (f *findings) add(hazards []driver.Hazard, addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range hazards {
		if !slices.Contains(f.hazards, h) {
			f.hazards, f.where = append(f.hazards, h), append(f.where, addr)
		}
	}
}

func (f *findings) list() []driver.Hazard {
	for i := range f.hazards {
		f.hazards[i].Setting += f.where[i]
	}
	return f.hazards
}

func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// examine reads one server's INFO, which was asked for between sent and got.
func examine(info map[string]string, sent, got time.Time) ([]driver.Hazard, error) {
	var hazards []driver.Hazard
	add := func(grave bool, setting, breaks, fix string) {
		hazards = append(hazards, driver.Hazard{Store: "redis", Setting: setting, Breaks: breaks, Fix: fix, Grave: grave})
	}
	var missing []error
	for _, name := range []string{"redis_version", "role", "connected_slaves", "aof_enabled", "maxmemory_policy", "maxmemory", "server_time_usec"} {
		if _, ok := info[name]; !ok {
			missing = append(missing, errors.New("no field "+name))
		}
	}
	if v := info["redis_version"]; v != "" && older(v) {
		add(false, "version "+v, "what the tests have shown", fmt.Sprintf("use %d.%d or later", oldestMajor, oldestMinor))
	}
	if info["role"] == "slave" {
		add(false, "role replica", "every lock: a replica refuses writes", "connect to the primary, by Sentinel or Cluster")
	}
	if info["aof_enabled"] == "0" {
		add(true, "appendonly no", "one at a time, no late effect: a restart forgets who holds a lock and what a fence has seen",
			"set appendonly yes")
	}
	if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
		add(info["maxmemory"] != "0", "maxmemory-policy "+p, "one at a time, no late effect: a lock, its order or a fence may be evicted",
			"set maxmemory-policy noeviction")
	}
	if _, bounded := info["min_slaves_good_slaves"]; info["connected_slaves"] != "" && info["connected_slaves"] != "0" && !bounded {
		add(true, "min-replicas-to-write 0", "one at a time: a primary that is cut off from its replicas goes on granting beside its successor",
			"set min-replicas-to-write 1 and a small min-replicas-max-lag")
	}
	if off := skew(info["server_time_usec"], sent, got); off > clockSlack {
		add(false, "clock differs from this host's by more than "+off.Truncate(time.Second).String(),
			"tokens that grow through a failover or a loss of data", "keep all clocks by NTP, slewed, never stepped")
	}
	return hazards, errors.Join(missing...)
}

func older(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	return err != nil || m < oldestMajor || m == oldestMajor && n < oldestMinor
}

// skew is how far, at least, a clock that showed the given microseconds between
// sent and got is from ours.
func skew(microseconds string, sent, got time.Time) time.Duration {
	n, err := strconv.ParseInt(microseconds, 10, 64)
	if err != nil {
		return 0 // the field is missing, which is told already
	}
	at := time.UnixMicro(n)
	return max(sent.Sub(at), at.Sub(got), 0)
}
