package servertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// SentinelSet is a primary, its replica and three sentinels that watch them.
type SentinelSet struct {
	Name             string // of the primary, as the sentinels know it
	Primary, Replica *Server
	Sentinels        []*Server
}

// Addrs is where the sentinels are.
func (s *SentinelSet) Addrs() []string {
	addrs := make([]string, len(s.Sentinels))
	for i, sentinel := range s.Sentinels {
		addrs[i] = sentinel.Addr
	}
	return addrs
}

// Sentinel starts a set, in about 2 s. It returns when every sentinel knows the
// replica and both other sentinels: sooner, a primary that dies finds no quorum.
// A dead primary is replaced about 2 s later.
func Sentinel(t testing.TB) *SentinelSet {
	t.Helper()
	set := &SentinelSet{Name: "mymaster", Primary: redisNode(t)}
	set.Replica = RedisReplica(t, set.Primary)
	for range 3 {
		set.Sentinels = append(set.Sentinels, sentinelNode(t, set))
	}
	for _, s := range set.Sentinels {
		awaitRedis(t, s, "num-slaves", "1", "SENTINEL", "MASTER", set.Name)
		awaitRedis(t, s, "num-other-sentinels", "2", "SENTINEL", "MASTER", set.Name)
	}
	return set
}

// sentinelNode needs a file of its own: a sentinel keeps its state there.
func sentinelNode(t testing.TB, set *SentinelSet) *Server {
	t.Helper()
	path, listen, dir := binary(t, "redis-server"), reserve(t), t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %[1]s\nbind 127.0.0.1\ndir %[2]s\nsentinel monitor %[3]s %[4]s 2\n"+
		"sentinel down-after-milliseconds %[3]s 500\nsentinel failover-timeout %[3]s 3000\nsentinel parallel-syncs %[3]s 1\n",
		listen, dir, set.Name, spaced(set.Primary.Addr))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, command{
		path: path, args: []string{config, "--sentinel"}, dir: dir,
		term: syscall.SIGTERM, ping: redisPing(listen.addr()),
	}, listen)
}

// RedisCluster starts three masters that share the slots, without replicas, in
// about 2 s.
func RedisCluster(t testing.TB) []*Server {
	t.Helper()
	const nodes, slots = 3, 16384
	all := make([]*Server, nodes)
	var firstBus string
	for i := range all {
		node, bus := clusterNode(t)
		all[i] = node
		if i == 0 {
			firstBus = bus
		}
		first, last := i*slots/nodes, (i+1)*slots/nodes-1
		mustRedis(t, node, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		mustRedis(t, node, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, node := range all[1:] {
		mustRedis(t, node, append(append([]string{"CLUSTER", "MEET"}, strings.Fields(spaced(all[0].Addr))...), firstBus)...)
	}
	for _, node := range all {
		awaitRedis(t, node, "cluster_known_nodes", strconv.Itoa(nodes), "CLUSTER", "INFO")
		awaitRedis(t, node, "cluster_state", "ok", "CLUSTER", "INFO")
	}
	return all
}

// clusterNode also returns the port of the node's bus. Left alone a node takes
// port + 10000 for it, which need not exist.
func clusterNode(t testing.TB) (node *Server, bus string) {
	t.Helper()
	path, listen, busPort := binary(t, "redis-server"), reserve(t), reserve(t)
	node = launch(t, redisCommand(path, t.TempDir(), listen,
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "1000", "--cluster-port", busPort.String()), listen, busPort)
	return node, busPort.String()
}

func mustRedis(t testing.TB, s *Server, args ...string) {
	t.Helper()
	if _, err := respDo(t.Context(), s.Addr, args...); err != nil {
		t.Fatalf("redis at %s: %v: %v", s.Addr, args, err)
	}
}

// spaced is "host port", as Redis wants it.
func spaced(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // Redis says what is wrong with it
	}
	return host + " " + port
}
