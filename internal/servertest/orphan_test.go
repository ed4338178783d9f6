package servertest_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
)

const childEnv = "SERVERTEST_CHILD"

// deaths are the ways in which a test process may end without its cleanups.
var deaths = map[string]func(){
	"PanicInTest":      func() { panic("as asked") },
	"PanicInGoroutine": func() { go panic("as asked"); select {} },
	"Exit":             func() { os.Exit(3) },
	"Kill":             func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
}

// TestServer_DiesWithTheTestProcess runs itself as a child that starts a server,
// pauses it, so that it hears nothing but SIGKILL, and dies.
func TestServer_DiesWithTheTestProcess(t *testing.T) {
	if how := os.Getenv(childEnv); how != "" {
		s := servertest.Redis(t, "--maxmemory", "64mb")
		s.Pause()
		os.Stdout.WriteString("server at " + s.Addr + "\n")
		deaths[how]()
	}
	for how := range deaths {
		t.Run(how, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServer_DiesWithTheTestProcess$")
			child.Env = append(os.Environ(), childEnv+"="+how, "TMPDIR="+t.TempDir()) // which it does not clean
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("got %v, want the child to fail", err)
			}
			addr := regexp.MustCompile(`server at (\S+)`).FindSubmatch(out)
			if addr == nil {
				t.Fatalf("the child started no server:\n%s", out)
			}
			expectRefused(t, string(addr[1]))
		})
	}
}

// expectRefused waits for the kernel: a paused server would accept, too.
func expectRefused(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatalf("the server at %s still accepts", addr)
		}
	}
}
