package servertest_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }
