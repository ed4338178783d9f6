package redisstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/servertest"
)

// settings are what Check finds, grave ones marked by "!".
func settings(t *testing.T, c redis.UniversalClient) []string {
	t.Helper()
	hazards, err := newStore(t, c).Check(t.Context())
	if err != nil {
		t.Fatalf("Check: got %v, want nil", err)
	}
	var found []string
	for _, h := range hazards {
		setting, _, _ := strings.Cut(h.Setting, " at ")
		if h.Grave {
			setting += "!"
		}
		found = append(found, setting)
	}
	slices.Sort(found)
	return found
}

func TestStore_CheckFindsNothingOnASafeServer(t *testing.T) {
	server := servertest.Redis(t, "--appendonly", "yes", "--min-replicas-to-write", "1")
	servertest.RedisReplica(t, server)
	if got := settings(t, client(t, server.Addr)); len(got) != 0 {
		t.Errorf("hazards: got %v, want none", got)
	}
}

func TestStore_CheckNamesWhatBreaksAPromise(t *testing.T) {
	server := servertest.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	replica := servertest.RedisReplica(t, server, "--appendonly", "yes")
	want := []string{"appendonly no!", "maxmemory-policy allkeys-lru!", "min-replicas-to-write 0!"}
	if got := settings(t, client(t, server.Addr)); !slices.Equal(got, want) {
		t.Errorf("hazards of the primary: got %v, want %v", got, want)
	}
	if got := settings(t, client(t, replica.Addr)); !slices.Equal(got, []string{"role replica"}) {
		t.Errorf("hazards of the replica: got %v, want its role", got)
	}
}

func TestStore_CheckLooksAtEveryNodeOfACluster(t *testing.T) {
	var addrs []string
	for _, node := range servertest.RedisCluster(t) {
		addrs = append(addrs, node.Addr)
	}
	odd := client(t, addrs[2])
	if err := odd.ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err(); err != nil {
		t.Fatal(err)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = c.Close() })
	if got := settings(t, c); !slices.Equal(got, []string{"appendonly no!", "maxmemory-policy volatile-lru"}) {
		t.Errorf("hazards: got %v, want what all have, once, and what one has", got)
	}
}

func TestStore_CheckSaysThatItCouldNotLook(t *testing.T) {
	server := servertest.Redis(t)
	plain := client(t, server.Addr)
	if err := plain.Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Do(t.Context(), "ACL", "DELUSER", "blind") })
	s := newStore(t, clientWith(t, &redis.Options{Addr: server.Addr, Username: "blind", Password: "secret"}))
	hazards, err := s.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "INFO") {
		t.Errorf("Check without the permission: got %v, %v, want an error that names INFO", hazards, err)
	}
	acquire(t, s, request(t, "k", long)) // locks need no such permission
}
