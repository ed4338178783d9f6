package faults_test

import (
	"io"
	"log"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9/logging"

	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) {
	logging.Disable() // the clients tell of every fault that a test makes
	_ = mysql.SetLogger(log.New(io.Discard, "", 0))
	if s := os.Getenv(setupEnv); s != "" {
		os.Exit(perform(s))
	}
	servertest.Main(m)
}
