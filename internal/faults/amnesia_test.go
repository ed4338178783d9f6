package faults_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Redis forgets everything right after a grant: the next holder's token is greater
// all the same, since sequences follow the clock. A counter beside the lock
// begins again.
func TestAmnesia_TokensKeepGrowing(t *testing.T) {
	server := servertest.Redis(t, "--appendonly", "no") // a server of its own
	url := "redis://" + server.Addr
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	forgets := map[string]func(){
		"FLUSHALL": func() {
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		},
		"Restart": func() {
			server.Kill()
			server.Restart(t)
		},
	}
	for name, forget := range forgets {
		t.Run(name, func(t *testing.T) {
			old := openGuard(t, profile(outageTTL, 0), openStore(t, url))
			young := openGuard(t, profile(outageTTL, patience), openStore(t, url))
			for range servertest.Count(3, 20) {
				key := newKey("amnesia")
				count := client.Incr(t.Context(), "counter:"+key).Val()
				before := tokenUnder(t, old, key)
				forget()
				after := tokenUnder(t, young, key)
				if after <= before {
					t.Errorf("got token %d after %d, want a greater one", after, before)
				}
				if again := client.Incr(t.Context(), "counter:"+key).Val(); again > count {
					t.Errorf("a counter goes from %d to %d: no harm, so the test shows nothing", count, again)
				}
			}
		})
	}
}

// tokenUnder is the token of a hold that is not given back: its holder does not
// know that it is over.
func tokenUnder(t *testing.T, g *guard.Guard, key string) fencing.Token {
	t.Helper()
	_, l, err := g.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Unlock(context.Background()) }) // the server may have forgotten it
	return l.Token()
}
