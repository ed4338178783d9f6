package gormguard_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	gormlite "github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/fencing"
)

// counting is a pool that notes what is executed outside transactions.
type counting struct {
	*sql.DB

	before func(text string) // of a query; nil: nothing

	mu    sync.Mutex
	texts []string
}

func (c *counting) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	c.note(text)
	return c.DB.ExecContext(ctx, text, args...)
}

func (c *counting) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	c.note(text)
	if c.before != nil {
		c.before(text)
	}
	return c.DB.QueryContext(ctx, text, args...)
}

func (c *counting) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if c.before != nil {
		c.before(text)
	}
	return c.DB.QueryRowContext(ctx, text, args...)
}

func (c *counting) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

func (c *counting) GetDBConn() (*sql.DB, error) { return c.DB, nil }

// about is how many of them are about the register.
func (c *counting) about() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, text := range c.texts {
		if strings.Contains(text, "pawl_fences") {
			n++
		}
	}
	return n
}

func TestPlugin_RaisesOncePerGrantAndDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		c := &counting{DB: raw(t, w.unfenced(t))}
		db, err := gorm.Open(gormlite.Dialector{Conn: c}, &gorm.Config{Logger: logger.Discard})
		must(t, "open", err)
		use(t, db)
		ctx := soon(t)
		for holder := range uint64(2) {
			for range 3 {
				h := db.WithContext(held(ctx, "a", holder+1))
				must(t, "write", setUnits(h, "a", 1))
				_, err := units(h, "a")
				must(t, "read", err)
			}
			if got, want := c.about(), 2*int(holder+1); got != want { // a look and an upsert
				t.Errorf("holder %d: got %d statements outside transactions, want %d", holder+1, got, want)
			}
		}
	}, "SQLite")
}

func TestPlugin_RowsAreRefusedWhenALaterHolderComesMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, w world) {
		for name, read := range map[string]func(db *gorm.DB) error{
			"Row": func(db *gorm.DB) error { var n int; return db.Raw("SELECT units FROM items").Row().Scan(&n) },
			"Rows": func(db *gorm.DB) error {
				rows, err := db.Raw("SELECT units FROM items").Rows()
				if err != nil {
					return err
				}
				defer rows.Close()
				return rows.Err()
			},
		} {
			c := &counting{DB: raw(t, w.unfenced(t))}
			db, err := gorm.Open(gormlite.Dialector{Conn: c}, &gorm.Config{Logger: logger.Discard})
			must(t, "open", err)
			use(t, db)
			c.before = func(text string) {
				if text == "SELECT units FROM items" {
					must(t, "the later holder", setUnits(w.fenced(t).WithContext(held(soon(t), name, 2)), "a", 3))
				}
			}
			wantIs(t, name, read(db.WithContext(held(soon(t), name, 1))), fencing.ErrStale)
			if n := c.Stats().InUse; n != 0 {
				t.Errorf("%s: got %d connections in use, want 0", name, n)
			}
		}
	}, "SQLite")
}
