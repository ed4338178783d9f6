package servertest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// NewSQLProxy puts a proxy in front of the server of a DSN and returns the DSN that
// goes through it.
func NewSQLProxy(t testing.TB, dsn string) (p *Proxy, through string) {
	t.Helper()
	target, err := sqlAddr(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p = NewProxy(t, target)
	through, err = withAddr(dsn, p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return p, through
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func sqlAddr(dsn string) (string, error) {
	if isURL(dsn) {
		return postgresAddr(dsn)
	}
	return mariadbAddr(dsn)
}

func withAddr(dsn, addr string) (string, error) {
	if isURL(dsn) {
		u, err := url.Parse(dsn)
		if err != nil {
			return "", err
		}
		u.Host = addr
		return u.String(), nil
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("servertest: a DSN is an URL or of go-sql-driver: %w", err)
	}
	config.Net, config.Addr = "tcp", addr
	return config.FormatDSN(), nil
}
