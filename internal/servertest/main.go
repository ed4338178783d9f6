package servertest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main is the body of a TestMain: it runs the tests, stops the servers that they
// shared, and fails when a goroutine is left.
func Main(m *testing.M, leaks ...goleak.Option) {
	os.Exit(run(m, leaks))
}

func run(m *testing.M, leaks []goleak.Option) int {
	code := m.Run()
	servers.close()
	if code != 0 {
		return code // a failed test leaves goroutines behind; its own message matters
	}
	if err := goleak.Find(leaks...); err != nil {
		fmt.Fprintf(os.Stderr, "servertest: %v\n", err)
		return 1
	}
	return 0
}
