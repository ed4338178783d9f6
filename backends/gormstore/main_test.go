package gormstore_test

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"testing"
	"time"

	gormlite "github.com/glebarez/sqlite"
	driverlog "github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) {
	_ = driverlog.SetLogger(&driverlog.NopLogger{}) // it logs each connection that a test breaks
	servertest.Main(m)
}

// database is a kind of database.
type database struct {
	name   string
	driver string // as database/sql knows it
	empty  func(t testing.TB) string
	open   func(dsn string) gorm.Dialector
	over   func(conn gorm.ConnPool) gorm.Dialector
	now    string // SQL: microseconds since 1970
}

func sqliteDB() database {
	return database{
		name: "SQLite", driver: "sqlite",
		empty: func(t testing.TB) string { return sqliteDSN(servertest.SQLiteFile(t)) },
		open:  gormlite.Open,
		over:  func(c gorm.ConnPool) gorm.Dialector { return &gormlite.Dialector{Conn: c} },
		now:   "(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)",
	}
}

func postgresDB() database {
	return database{
		name: "PostgreSQL", driver: "pgx",
		empty: servertest.PostgresDB,
		open:  gormpg.Open,
		over:  func(c gorm.ConnPool) gorm.Dialector { return gormpg.New(gormpg.Config{Conn: c}) },
		now:   "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
	}
}

func mariaDB() database {
	return database{
		name: "MariaDB", driver: "mysql",
		empty: func(t testing.TB) string { return servertest.MariaDBDB(t) + "&interpolateParams=true" },
		open:  gormmysql.Open,
		over:  func(c gorm.ConnPool) gorm.Dialector { return gormmysql.New(gormmysql.Config{Conn: c}) },
		now:   "(CAST(UNIX_TIMESTAMP() AS INT) * 1000000)",
	}
}

func sqliteDSN(path string) string {
	return "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_txlock=immediate"
}

func databases() []database { return append(servers(), sqliteDB()) }

func servers() []database { return []database{postgresDB(), mariaDB()} }

// connect is another process's handle.
func (d database) connect(t testing.TB, dsn string) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(d.open(dsn), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool(t, db).Close() })
	return db
}

func (d database) store(t testing.TB, dsn string) *gormstore.Store {
	t.Helper()
	return storeOn(t, d.connect(t, dsn))
}

// migrated is a store on a database that gets its tables.
func (d database) migrated(t testing.TB, dsn string) (*gormstore.Store, *gorm.DB) {
	t.Helper()
	db := d.connect(t, dsn)
	if err := gormstore.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return storeOn(t, db), db
}

func storeOn(t testing.TB, db *gorm.DB) *gormstore.Store {
	t.Helper()
	s, err := gormstore.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func pool(t testing.TB, db *gorm.DB) *sql.DB {
	t.Helper()
	p, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(key string) driver.Request {
	return driver.Request{Key: key, Owner: "test#" + rand.Text(), TTL: time.Minute}
}

func acquire(t testing.TB, s *gormstore.Store, r driver.Request) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire of a free key: got %v, want nil", err)
	}
	return g
}

func release(t testing.TB, s *gormstore.Store, g driver.Grant) {
	t.Helper()
	if err := s.Release(t.Context(), g); err != nil {
		t.Fatalf("Release of a live hold: got %v, want nil", err)
	}
}

// exec runs a statement with ? for arguments.
func exec(t testing.TB, db *gorm.DB, statement string, args ...any) {
	t.Helper()
	if err := db.Exec(statement, args...).Error; err != nil {
		t.Fatalf("%.200s: %v", statement, err)
	}
}

// ask returns the one value that a query gives.
func ask[T any](t testing.TB, db *gorm.DB, query string, args ...any) T {
	t.Helper()
	var v T
	if err := db.Raw(query, args...).Row().Scan(&v); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
	return v
}

func isBusy(err error) bool    { return errors.Is(err, driver.ErrBusy) }
func isLost(err error) bool    { return errors.Is(err, driver.ErrLost) }
func isVerdict(err error) bool { return isBusy(err) || isLost(err) }
