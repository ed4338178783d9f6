package servertest

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// Redis starts a Redis server of the test's own, in about 40 ms. It writes nothing
// to disk unless args say so, and DEBUG is enabled. Without args the server of
// PAWL_TEST_REDIS is used when that is set.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	if addr := os.Getenv("PAWL_TEST_REDIS"); addr != "" && len(args) == 0 {
		if err := redisPing(addr)(t.Context()); err != nil {
			t.Fatalf("PAWL_TEST_REDIS=%s: %v", addr, err)
		}
		return &Server{Addr: addr, t: t}
	}
	return redisNode(t, args...)
}

// RedisReplica starts a replica of primary and returns when it has its first copy
// of the data.
func RedisReplica(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	s := redisNode(t, append([]string{"--replicaof", spaced(primary.Addr)}, args...)...)
	awaitRedis(t, s, "master_link_status", "up", "INFO", "replication")
	return s
}

func redisNode(t testing.TB, args ...string) *Server {
	t.Helper()
	path, listen := binary(t, "redis-server"), reserve(t)
	return launch(t, redisCommand(path, t.TempDir(), listen, args...), listen)
}

func redisCommand(path, dir string, listen *port, args ...string) command {
	return command{
		path: path,
		args: append([]string{
			"--port", listen.String(), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no",
			"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0",
		}, args...),
		dir:  dir,
		term: syscall.SIGTERM,
		ping: redisPing(listen.addr()),
	}
}

// redisPing succeeds when the server answers commands: neither an open port nor
// "LOADING" does.
func redisPing(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := respDo(ctx, addr, "PING")
		return err
	}
}

// awaitRedis asks s until the reply to args has the value under name.
func awaitRedis(t testing.TB, s *Server, name, value string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		got, err := respMap(ctx, s.Addr, args...)
		if err == nil && got[name] != value {
			err = fmt.Errorf("%s is %q, want %q", name, got[name], value)
		}
		return err
	})
	if err != nil {
		t.Fatalf("redis at %s: %v: %v\n%s", s.Addr, args, err, s.process.logTail())
	}
}
