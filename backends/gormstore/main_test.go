package gormstore_test

import (
	"database/sql"
	"testing"

	gormlite "github.com/glebarez/sqlite"
	gormmysql "gorm.io/driver/mysql"
	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// database is an empty database of a test's own.
type database struct {
	name string
	dsn  func(t *testing.T) string
	open func(dsn string) gorm.Dialector
}

func databases() []database {
	return []database{
		{"SQLite", func(t *testing.T) string { return sqliteDSN(servertest.SQLiteFile(t)) }, gormlite.Open},
		{"PostgreSQL", func(t *testing.T) string { return servertest.PostgresDB(t) }, gormpg.Open},
		{"MariaDB", func(t *testing.T) string { return servertest.MariaDBDB(t) + "&interpolateParams=true" }, gormmysql.Open},
	}
}

func sqliteDSN(path string) string {
	return "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_txlock=immediate"
}

// onEach runs a test on each database.
func onEach(t *testing.T, run func(t *testing.T, d database, dsn string)) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) { run(t, d, d.dsn(t)) })
	}
}

// connect is another process's handle.
func (d database) connect(t *testing.T, dsn string) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(d.open(dsn), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool(t, db).Close() })
	return db
}

func (d database) store(t *testing.T, dsn string) *gormstore.Store {
	t.Helper()
	return storeOn(t, d.connect(t, dsn))
}

// migrated is a store on a database with tables.
func (d database) migrated(t *testing.T, dsn string) (*gormstore.Store, *gorm.DB) {
	t.Helper()
	db := d.connect(t, dsn)
	if err := gormstore.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return storeOn(t, db), db
}

func storeOn(t *testing.T, db *gorm.DB) *gormstore.Store {
	t.Helper()
	s, err := gormstore.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func pool(t *testing.T, db *gorm.DB) *sql.DB {
	t.Helper()
	p, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
