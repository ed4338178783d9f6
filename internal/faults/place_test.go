package faults_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	gormlite "github.com/glebarez/sqlite"
	"github.com/redis/go-redis/v9"
	gormmysql "gorm.io/driver/mysql"
	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// place is where locks are kept, or stock. Its address is an URL that a child
// understands too: redis://, postgres://, mariadb://, sqlite://.
type place struct {
	name string
	// open gives a database of the test's own; own gives a server of its own, to be paused and killed.
	open func(t *testing.T) (url string)
	own  func(t *testing.T) (s *servertest.Server, url string)
}

func redisPlace() place {
	own := func(t *testing.T) (*servertest.Server, string) {
		t.Helper()
		s := servertest.Redis(t, "--appendonly", "yes", "--appendfsync", "always") // survives a kill
		return s, "redis://" + s.Addr
	}
	open := func(t *testing.T) string { t.Helper(); return "redis://" + servertest.Redis(t).Addr }
	return place{"Redis", open, own}
}

func postgresPlace() place {
	return place{
		"PostgreSQL",
		func(t *testing.T) string { t.Helper(); return migrated(t, servertest.PostgresDB(t)) },
		func(t *testing.T) (*servertest.Server, string) {
			t.Helper()
			s := servertest.PostgresWith(t)
			return s, migrated(t, s.Database(t))
		},
	}
}

func mariadbPlace() place {
	return place{
		"MariaDB",
		func(t *testing.T) string { t.Helper(); return migrated(t, mariadbURL(servertest.MariaDBDB(t))) },
		func(t *testing.T) (*servertest.Server, string) {
			t.Helper()
			s := servertest.MariaDBWith(t)
			return s, migrated(t, mariadbURL(s.Database(t)))
		},
	}
}

func sqlitePlace() place {
	return place{name: "SQLite", open: func(t *testing.T) string {
		t.Helper()
		return migrated(t, "sqlite://"+servertest.SQLiteFile(t))
	}}
}

// networked are the places that a network can take away.
func networked() []place { return []place{redisPlace(), postgresPlace(), mariadbPlace()} }

// sideBySide runs a test of each case at once, however few cores there are: the
// tests mostly wait.
func sideBySide[T fmt.Stringer](t *testing.T, cases []T, run func(t *testing.T, c T)) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range cases {
		all.Go(func() { t.Run(c.String(), func(t *testing.T) { run(t, c) }) })
	}
	all.Wait()
}

func (p place) String() string { return p.name }

func mariadbURL(dsn string) string { return "mariadb://" + dsn + "&interpolateParams=true" }

// throughProxy is url by way of a proxy.
func throughProxy(t *testing.T, url string) (p *servertest.Proxy, through string) {
	t.Helper()
	kind, rest, _ := strings.Cut(url, "://")
	switch kind {
	case "redis":
		p = servertest.NewProxy(t, rest)
		return p, "redis://" + p.Addr()
	case "mariadb":
		p, rest = servertest.NewSQLProxy(t, rest)
		return p, "mariadb://" + rest
	}
	return servertest.NewSQLProxy(t, url)
}

// connectDB is a connection pool of its own, as another process has.
func connectDB(url string) (*gorm.DB, error) {
	kind, rest, _ := strings.Cut(url, "://")
	var d gorm.Dialector
	switch kind {
	case "postgres":
		d = gormpg.Open(url)
	case "mariadb":
		d = gormmysql.Open(rest)
	case "sqlite":
		d = gormlite.Open("file:" + rest + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	default:
		return nil, fmt.Errorf("no such place: %q", url)
	}
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err == nil {
		pool.SetMaxIdleConns(16) // a process at work has its connections
	}
	return db, err
}

func closeDB(db *gorm.DB) {
	if pool, err := db.DB(); err == nil {
		_ = pool.Close() // the test is done with it
	}
}

// connectStore is a store on a connection of its own. Options of a Redis client
// may be changed before it is made.
func connectStore(url string, change ...func(*redis.Options)) (s driver.Viewer, closeStore func(), err error) {
	if addr, ok := strings.CutPrefix(url, "redis://"); ok {
		o := &redis.Options{Addr: addr}
		for _, f := range change {
			f(o)
		}
		client := redis.NewClient(o)
		store, err := redisstore.New(client)
		return store, func() { _ = client.Close() }, err
	}
	db, err := connectDB(url)
	if err != nil {
		return nil, nil, err
	}
	store, err := gormstore.New(db)
	return store, func() { closeDB(db) }, err
}

func migrated(t *testing.T, url string) string {
	t.Helper()
	db := openDB(t, url)
	if err := gormstore.Migrate(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	return url
}

func openDB(t *testing.T, url string) *gorm.DB {
	t.Helper()
	db, err := connectDB(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDB(db) })
	return db
}

// openFenced is a database with the plugin.
func openFenced(t *testing.T, url string) *gorm.DB {
	t.Helper()
	db := openDB(t, url)
	if err := db.Use(gormguard.Plugin()); err != nil {
		t.Fatal(err)
	}
	return db
}

func openStore(t *testing.T, url string, change ...func(*redis.Options)) driver.Viewer {
	t.Helper()
	s, closeStore, err := connectStore(url, change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeStore)
	return s
}
