package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/batch"
)

// grace is how long a call in flight may outstay its caller's context. A store
// call that is given up becomes an unknown outcome, and its repair may overtake
// it on another connection: then the key is held for nobody until its lease ends.
const grace = 25 * time.Millisecond

// call is one run of a lane's script.
type call struct {
	keys []string // the first says where it runs, and is what the call is about
	args []any
}

// reply is what came of a call. Its error is in cmd.
type reply struct {
	cmd  *redis.Cmd
	sent time.Time // right before the request that was answered was given to the client
}

// lane is the way of one script to the server: concurrent calls share a
// pipeline, callers leave when their context ends, whatever the client does.
func (s *Store) lane(source string) *batch.Lane[call, reply] {
	script := redis.NewScript(source)
	return &batch.Lane[call, reply]{
		Key:   func(c call) string { return c.keys[0] },
		Grace: grace,
		Send: func(ctx context.Context, calls []call, answer func(int, reply)) error {
			s.send(ctx, script, calls, answer)
			return nil
		},
	}
}

// send runs the calls, those of each cluster node in a pipeline of their own: a
// node that does not answer must not keep the answers of the others from their
// callers.
func (s *Store) send(ctx context.Context, script *redis.Script, calls []call, answer func(int, reply)) {
	groups := s.byNode(ctx, calls)
	var wg sync.WaitGroup
	for _, group := range groups[1:] {
		wg.Go(func() { s.pipeline(ctx, script, calls, group, answer) })
	}
	s.pipeline(ctx, script, calls, groups[0], answer)
	wg.Wait()
}

// byNode groups the positions of calls. It is only a grouping: the cluster
// client itself routes each command, so an outdated map costs time, no more.
func (s *Store) byNode(ctx context.Context, calls []call) [][]int {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok || len(calls) == 1 {
		all := make([]int, len(calls))
		for i := range all {
			all[i] = i
		}
		return [][]int{all}
	}
	group := make(map[*redis.Client]int)
	var groups [][]int
	for i, c := range calls {
		node, _ := cluster.MasterForKey(ctx, c.keys[0]) // nil if unknown: a group too
		at, known := group[node]
		if !known {
			at = len(groups)
			group[node] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// pipeline runs the calls at the given positions by the script's digest, and
// those whose server does not know it (new, restarted, promoted, flushed) once
// more by its source, which the server then keeps.
func (s *Store) pipeline(ctx context.Context, script *redis.Script, calls []call, at []int, answer func(int, reply)) {
	sent := time.Now()
	cmds := s.exec(ctx, calls, at, script.EvalSha)
	var unknown []int
	for n, i := range at {
		if redis.HasErrorPrefix(cmds[n].Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
			continue
		}
		answer(i, reply{cmds[n], sent})
	}
	if len(unknown) == 0 {
		return
	}
	sent = time.Now()
	for n, cmd := range s.exec(ctx, calls, unknown, script.Eval) {
		answer(unknown[n], reply{cmd, sent})
	}
}

func (s *Store) exec(
	ctx context.Context, calls []call, at []int, run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd,
) []*redis.Cmd {
	pipe := s.client.Pipeline()
	cmds := make([]*redis.Cmd, len(at))
	for n, i := range at {
		cmds[n] = run(ctx, pipe, calls[i].keys, calls[i].args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		for _, cmd := range cmds { // each has its own error, unless no connection was had at all
			if cmd.Err() == nil && cmd.Val() == nil {
				cmd.SetErr(err)
			}
		}
	}
	return cmds
}
