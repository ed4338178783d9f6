package gormguard_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log"
	"net/url"
	"slices"
	"testing"
	"time"

	gormlite "github.com/glebarez/sqlite"
	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
	gormmysql "gorm.io/driver/mysql"
	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // connections are broken on purpose
	// GORM starts a goroutine for each cache of prepared statements and never ends it.
	servertest.Main(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

type Item struct {
	SKU     string `gorm:"primaryKey;size:64"`
	Units   int
	OrderID *uint
}

type Order struct {
	ID    uint `gorm:"primaryKey"`
	Note  string
	Items []Item
}

// SimpleFence is a register as one would write it first, to show the harm.
type SimpleFence struct {
	Resource string `gorm:"primaryKey;size:64"`
	Token    int64
}

// database is a server and the isolation of its sessions.
type database struct {
	name   string
	dsn    func(t testing.TB) string
	dialer func(dsn string) gorm.Dialector
}

func databases() []database {
	return []database{
		{"SQLite", func(t testing.TB) string { return sqliteDSN(servertest.SQLiteFile(t)) }, gormlite.Open},
		{"PostgresReadCommitted", servertest.PostgresDB, gormpg.Open},
		{"PostgresRepeatableRead", func(t testing.TB) string {
			return servertest.PostgresDB(t) + "&default_transaction_isolation=repeatable%20read"
		}, gormpg.Open},
		{"MariaDB", servertest.MariaDBDB, gormmysql.Open},
	}
}

// sqliteDSN escapes the path: a # in the name of a subtest would end it.
func sqliteDSN(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
}

// world is a database with tables and one item of 10 units.
type world struct {
	database
	addr string
}

// onEach runs a test on each database, or on those named. Only some tests depend on
// the isolation and say so.
func onEach(t *testing.T, run func(t *testing.T, w world), names ...string) {
	t.Helper()
	if len(names) == 0 {
		names = []string{"SQLite", "PostgresReadCommitted", "MariaDB"}
	}
	for _, d := range databases() {
		if !slices.Contains(names, d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			w := world{d, d.dsn(t)}
			w.prepare(t)
			run(t, w)
		})
	}
}

// atEachIsolation runs a test on each database and, on PostgreSQL, at both
// isolations in use. MariaDB's is REPEATABLE READ.
func atEachIsolation(t *testing.T, run func(t *testing.T, w world)) {
	t.Helper()
	onEach(t, run, "SQLite", "PostgresReadCommitted", "PostgresRepeatableRead", "MariaDB")
}

func (w world) prepare(t testing.TB) {
	t.Helper()
	db := w.unfenced(t)
	must(t, "migrate", gormstore.Migrate(t.Context(), db))
	must(t, "migrate", db.AutoMigrate(&Order{}, &Item{}, &SimpleFence{}))
	w.put(t, "a", 10)
}

// unfenced is another process's handle, without the plugin.
func (w world) unfenced(t testing.TB, opts ...gorm.Option) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(w.dialer(w.addr), append([]gorm.Option{&gorm.Config{Logger: logger.Discard}}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw(t, db).Close() })
	return db
}

// fenced is another process's handle, with the plugin.
func (w world) fenced(t testing.TB, opts ...gormguard.Option) *gorm.DB {
	t.Helper()
	db := w.unfenced(t)
	use(t, db, opts...)
	return db
}

func use(t testing.TB, db *gorm.DB, opts ...gormguard.Option) {
	t.Helper()
	if err := db.Use(gormguard.Plugin(opts...)); err != nil {
		t.Fatal(err)
	}
}

func raw(t testing.TB, db *gorm.DB) *sql.DB {
	t.Helper()
	p, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w world) put(t testing.TB, sku string, units int) {
	t.Helper()
	if err := w.unfenced(t).Save(&Item{SKU: sku, Units: units}).Error; err != nil {
		t.Fatal(err)
	}
}

// units is what is committed.
func (w world) units(t testing.TB, sku string) int {
	t.Helper()
	n, err := units(w.unfenced(t), sku)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func units(db *gorm.DB, sku string) (int, error) {
	var i Item
	err := db.Where("sku = ?", sku).Take(&i).Error
	return i.Units, err
}

func setUnits(db *gorm.DB, sku string, n int) error {
	return db.Model(&Item{}).Where("sku = ?", sku).Update("units", n).Error
}

const origin = "etcd/shop"

// grant is the hold of the n-th holder of key.
func grant(key string, n uint64) fencing.Grant {
	token, err := fencing.NewToken(0, n)
	if err != nil {
		panic(err)
	}
	return fencing.Grant{Resource: "shop:" + key, Token: token, Origin: origin}
}

// held is the context of the n-th holder of key.
func held(ctx context.Context, key string, n uint64) context.Context {
	return fencing.NewContext(ctx, grant(key, n))
}

// soon bounds what must not hang.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// later runs f beside the test. The channel has its error.
func later(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// waits fails the test if f's end comes before it could have.
func waits(t *testing.T, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("%s: did not wait (error %v)", what, err)
	case <-time.After(150 * time.Millisecond): // that nothing happens is no event
	}
}

func rounds() int { return servertest.Count(10, 300) }
