package main

import (
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/servertest"
)

// TestMain makes the test binary the program when a test starts it as such, and
// the program starts it again for its processes.
func TestMain(m *testing.M) {
	if os.Getenv("PAWL_FLASHSALE_PROGRAM") != "" || os.Getenv(roleVariable) != "" {
		main()
	}
	servertest.Main(m)
}
