package faults_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"
)

// units are how many of each item there are to begin with.
const units = 100_000

// market is where locks and the stock that they protect are kept, and the ways to
// protect it there.
type market struct {
	name        string
	lock, stock place
	modes       []string
}

func (m market) String() string { return m.name }

func markets() []market {
	rows := []string{unfenced, checkOnWrite, statements}
	all := append([]string{transaction, withLock}, rows...)
	return []market{
		{"RedisAndPostgreSQL", redisPlace(), postgresPlace(), all},
		{"PostgreSQL", postgresPlace(), postgresPlace(), all},
		{"MariaDB", mariadbPlace(), mariadbPlace(), all},
		{"SQLite", sqlitePlace(), sqlitePlace(), rows}, // in a transaction a frozen holder would block the file
		{"Redis", redisPlace(), redisPlace(), rows},
	}
}

// open makes empty places; one if both are of a kind.
func (m market) open(t *testing.T) (setup, *warehouse) {
	t.Helper()
	s := setup{TTL: staleTTL, Wait: patience, Stock: m.stock.open(t)}
	s.Lock = s.Stock
	if m.lock.name != m.stock.name {
		s.Lock = m.lock.open(t)
	}
	return s, openWarehouse(t, s.Stock)
}

// warehouse is the stock, as the test itself sees it.
type warehouse struct {
	t      *testing.T
	db     *gorm.DB
	client *redis.Client // nil if it is a database
	file   *gorm.DB      // a file's own connection, which does not wait; nil otherwise
}

func openWarehouse(t *testing.T, url string) *warehouse {
	t.Helper()
	if addr, ok := strings.CutPrefix(url, "redis://"); ok {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		return &warehouse{t: t, client: client}
	}
	w := &warehouse{t: t, db: openDB(t, url)}
	if strings.HasPrefix(url, "sqlite://") {
		w.file = openDB(t, url)
		if err := w.file.Exec("PRAGMA busy_timeout = 50").Error; err != nil { // of the one connection that it will ever have
			t.Fatal(err)
		}
	}
	if err := w.db.Exec(itemsTable).Error; err != nil {
		t.Fatal(err)
	}
	return w
}

// item is a new item with its units.
func (w *warehouse) item(what string) (key string) {
	w.t.Helper()
	key = newKey(what)
	var err error
	if w.client != nil {
		err = w.client.Set(w.t.Context(), redisKey(key), units, 0).Err()
	} else {
		err = w.db.Exec("INSERT INTO items (name, stock, token) VALUES (?, ?, 0)", key, units).Error
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

// gone is how many units of an item have gone.
func (w *warehouse) gone(key string) (n int64) {
	w.t.Helper()
	var left int64
	var err error
	if w.client != nil {
		left, err = w.client.Get(w.t.Context(), redisKey(key)).Int64()
	} else {
		err = w.db.Raw("SELECT stock FROM items WHERE name = ?", key).Scan(&left).Error
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return units - left
}

// stop freezes c, but not while it writes to a file: no other process could write
// then, and none would be a later holder.
func (w *warehouse) stop(c *child) {
	w.t.Helper()
	stopped := eventually(patience, func() bool {
		c.stop()
		if w.file == nil || w.file.Exec("UPDATE items SET token = token WHERE name = ''").Error == nil {
			return true
		}
		c.resume()
		return false
	})
	if !stopped {
		w.t.Fatal("a child writes to its file all the time")
	}
}
