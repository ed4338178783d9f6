package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) {
	logging.Disable() // the client tells of every fault that a test makes
	servertest.Main(m)
}
