package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/glebarez/sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const (
	dialTimeout = 5 * time.Second

	// All processes together stay below the 100 connections that PostgreSQL allows.
	allConnections = 64
)

// dialector reads -db. It does not connect.
func dialector(address string) (gorm.Dialector, error) {
	scheme, _, isURL := strings.Cut(address, "://")
	switch {
	case strings.HasPrefix(address, "file:"), address == ":memory:":
		return nil, fmt.Errorf("%q: use the path of a file that all processes can open", address)
	case !isURL:
		return sqlite.Open(sqliteDSN(address)), nil
	case scheme == "postgres" || scheme == "postgresql":
		if _, err := server(address); err != nil {
			return nil, err
		}
		return postgres.Open(address), nil
	case scheme == "mysql" || scheme == "mariadb":
		u, err := server(address)
		if err != nil {
			return nil, err
		}
		dsn, err := mysqlDSN(u)
		return mysql.Open(dsn), err
	}
	return nil, fmt.Errorf("unknown kind %q: use a path, postgres:// or mysql://", scheme+"://")
}

// server reads the URL of a server. Errors do not repeat it, since it may carry
// a password.
func server(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("this is no URL: write kind://user:password@host:port/name, with %-escapes for signs in the password")
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host: write kind://user:password@host:port/name", u.Redacted())
	}
	return u, nil
}

// redacted is an address without its password.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return "(unreadable)"
}

// sqliteDSN opens a file for several processes: a log beside it, so that readers
// and the writer do not wait for each other; patience for other writers; and
// transactions that get the write lock first, since one that has read cannot
// wait for it any more.
func sqliteDSN(path string) string {
	file := (&url.URL{Path: path}).EscapedPath()
	return "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_txlock=immediate"
}

func mysqlDSN(u *url.URL) (string, error) {
	c, err := mysqldriver.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return "", errors.New("the part behind the ? is not understood by github.com/go-sql-driver/mysql")
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	if c.DBName == "" {
		return "", fmt.Errorf("%s names no database: write mysql://user:password@host:port/name", u.Redacted())
	}
	c.InterpolateParams = true // else each statement is prepared first, in a round trip of its own
	if c.Timeout == 0 {
		c.Timeout = dialTimeout
	}
	return c.FormatDSN(), nil
}

// connect opens the database and sees that it answers.
func connect(ctx context.Context, address string, processes int) (*gorm.DB, error) {
	d, err := dialector(address)
	if err != nil {
		return nil, err
	}
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true})
	if err != nil {
		return nil, fmt.Errorf("-db %s cannot be opened: %w", redacted(address), err)
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(allConnections / max(processes, 8))
	pool.SetMaxIdleConns(allConnections)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := pool.PingContext(ctx); err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("-db %s does not answer: %w", redacted(address), err)
	}
	return db, nil
}

func disconnect(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}
