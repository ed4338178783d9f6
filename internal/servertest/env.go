package servertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Require says whether a missing server fails a test instead of skipping it:
// PAWL_TEST_REQUIRE=1, which CI sets, so that nothing is skipped there unseen.
func Require() bool { return os.Getenv("PAWL_TEST_REQUIRE") == "1" }

// Count is full under PAWL_SOAK=1, else reduced.
func Count(reduced, full int) int {
	if os.Getenv("PAWL_SOAK") == "1" {
		return full
	}
	return reduced
}

// unavailable ends the test. It is the one place of the module that skips.
func unavailable(t testing.TB, why string) {
	t.Helper()
	if Require() {
		t.Fatalf("%s (PAWL_TEST_REQUIRE=1; `make services` installs servers)", why)
	}
	t.Skipf("%s; `make services` installs servers", why)
}

// binary is the path of the first name that is installed: a name on the PATH, or a
// pattern of paths, of which the last one counts.
func binary(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if found, err := filepath.Glob(name); err == nil && filepath.IsAbs(name) && len(found) > 0 {
			return found[len(found)-1]
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	unavailable(t, names[0]+" is not installed")
	return ""
}
