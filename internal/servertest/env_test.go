package servertest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/internal/servertest"
)

// recorder is a test that notes how it ended.
type recorder struct {
	testing.TB

	mu      sync.Mutex
	skipped string
	failed  string
}

func (r *recorder) Skipf(format string, args ...any) {
	r.end(&r.skipped, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end(&r.failed, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) { r.end(&r.failed, fmt.Sprint(args...)) }

func (r *recorder) end(how *string, text string) {
	r.mu.Lock()
	*how = text
	r.mu.Unlock()
	runtime.Goexit()
}

// record runs fn as a test of its own would be.
func record(t *testing.T, fn func(testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { fn(r) })
	wg.Wait()
	return r
}

func TestServer_MissingSkipsUnlessRequired(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("PAWL_TEST_REDIS", "")
	starts := func(t testing.TB) { servertest.Redis(t) }

	t.Setenv("PAWL_TEST_REQUIRE", "")
	if got := record(t, starts); !strings.Contains(got.skipped, "redis-server is not installed") || got.failed != "" {
		t.Errorf("got skipped %q, failed %q, want skipped", got.skipped, got.failed)
	}
	t.Setenv("PAWL_TEST_REQUIRE", "1")
	if got := record(t, starts); !strings.Contains(got.failed, "redis-server is not installed") || got.skipped != "" {
		t.Errorf("got skipped %q, failed %q, want failed", got.skipped, got.failed)
	}
}

func TestServer_StartThatFailsShowsItsLog(t *testing.T) {
	servertest.Redis(t, "--maxmemory", "64mb") // or this test is skipped, with the reason
	got := record(t, func(t testing.TB) { servertest.Redis(t, "--no-such-directive", "1") })
	if !strings.Contains(got.failed, "Bad directive") {
		t.Errorf("got %q, want what the server said", got.failed)
	}
}

func TestServer_FromTheEnvironment(t *testing.T) {
	redis := servertest.Redis(t, "--maxmemory", "64mb")
	t.Setenv("PAWL_TEST_REDIS", redis.Addr)
	given := servertest.Redis(t)
	if given.Addr != redis.Addr {
		t.Errorf("got %s, want the server of the environment at %s", given.Addr, redis.Addr)
	}
	if private := servertest.Redis(t, "--maxmemory", "64mb"); private.Addr == redis.Addr {
		t.Error("got the server of the environment with arguments of our own")
	}
	t.Setenv("PAWL_TEST_REQUIRE", "")
	if got := record(t, func(t testing.TB) { servertest.Redis(t).Pause() }); !strings.Contains(got.skipped, "not ours") {
		t.Errorf("got skipped %q, failed %q, want skipped: the process is not ours", got.skipped, got.failed)
	}
}

func TestDatabase_FromTheEnvironment(t *testing.T) {
	for i, variable := range []string{"PAWL_TEST_POSTGRES", "PAWL_TEST_MARIADB"} {
		d := databases[i]
		t.Run(d.name, func(t *testing.T) {
			s := d.with(t)
			t.Setenv(variable, s.DSN("%s"))
			given := d.shared(t)
			if given.Addr != s.Addr {
				t.Errorf("got %s, want the server of the environment at %s", given.Addr, s.Addr)
			}
			execute(t, open(t, d.driver, given.Database(t)), "SELECT 1")
			t.Setenv(variable, strings.Replace(s.DSN("%s"), "%s", "one", 1))
			if got := record(t, func(t testing.TB) { d.shared(t) }); !strings.Contains(got.failed, variable) {
				t.Errorf("got %q, want a complaint about %s", got.failed, variable)
			}
		})
	}
}

func TestCount_IsReducedUnlessSoaked(t *testing.T) {
	t.Setenv("PAWL_SOAK", "")
	if got := servertest.Count(3, 1000); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
	t.Setenv("PAWL_SOAK", "1")
	if got := servertest.Count(3, 1000); got != 1000 {
		t.Errorf("got %d, want 1000", got)
	}
}
