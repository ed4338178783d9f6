package main_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/servertest"
)

func TestFlashsale_OversellsWithoutAFenceAndIsExactWithIt(t *testing.T) {
	began := time.Now()
	p, code := perform(t)
	if code != 0 {
		t.Fatalf("got exit status %d, want 0\n%s", code, p.text())
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("got %v, want under 20 s", took)
	}
	if want := "100 units, 160 buyers, 4 processes; stock on sqlite, lock on sqlite"; !strings.Contains(p.out.String(), want) {
		t.Errorf("got no caption %q\n%s", want, p.text())
	}
	p.checkTable(100, 160)
	p.checkStory()
}

func TestFlashsale_RunsOnServers(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags func(t *testing.T) []string
	}{
		{"RedisAndSQLite", func(t *testing.T) []string {
			return []string{"-lock", "redis://" + servertest.Redis(t).Addr, "-db", servertest.SQLiteFile(t)}
		}},
		{"RedisAndPostgres", func(t *testing.T) []string {
			return []string{"-lock", "redis://" + servertest.Redis(t).Addr, "-db", servertest.PostgresDB(t)}
		}},
		{"RedisAndMariaDB", func(t *testing.T) []string {
			return []string{"-lock", "redis://" + servertest.Redis(t).Addr, "-db", mysqlURL(t, servertest.MariaDBDB(t))}
		}},
		{"Postgres", func(t *testing.T) []string { return []string{"-db", servertest.PostgresDB(t)} }},
		{"MariaDB", func(t *testing.T) []string { return []string{"-db", mysqlURL(t, servertest.MariaDBDB(t))} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, code := perform(t, append(c.flags(t), "-units", "24", "-buyers", "40", "-processes", "3")...)
			if code != 0 {
				t.Fatalf("got exit status %d, want 0\n%s", code, p.text())
			}
			p.checkTable(24, 40)
		})
	}
}

func mysqlURL(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := c.User
	if c.Passwd != "" {
		user += ":" + c.Passwd
	}
	return "mysql://" + user + "@" + c.Addr + "/" + c.DBName
}

// checkTable compares the table with what is certain: in (b) another quarter of
// the units was sold while the holder was frozen, and again after its late write.
func (p *program) checkTable(units, buyers int) {
	p.t.Helper()
	n := strconv.Itoa
	quarter := units / 4
	for _, c := range []struct {
		label   string
		want    []string // units, sold, oversold, double sold, stale refused
		verdict string
	}{
		{"(a) no lock", []string{n(units), n(buyers), n(buyers - units), "*", "-"}, "HARM, as expected"},
		{"(b) lock only", []string{n(units), n(units + quarter), n(quarter), n(quarter), "-"}, "HARM, as expected"},
		{"(c) lock and fence", []string{n(units), n(units), "0", "0", "*"}, "OK, exact"},
	} {
		cells, verdict := p.row(c.label)
		got := cells[:len(c.want)]
		for i, want := range c.want {
			if want == "*" && atLeastOne(got[i]) {
				got[i] = "*"
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || verdict != c.verdict {
			p.t.Errorf("%s: got %q and (-want +got)\n%s\n%s", c.label, verdict, diff, p.text())
		}
		if waits, rate := cells[5], cells[6]; c.label != "(a) no lock" && !atLeastOne(waits) || !atLeastOne(rate) {
			p.t.Errorf("%s: got %s waits and %s orders/s, want more", c.label, waits, rate)
		}
	}
}

func atLeastOne(cell string) bool {
	n, err := strconv.Atoi(cell)
	return err == nil && n >= 1
}

// checkStory looks for the progress of somebody who does not see a terminal.
func (p *program) checkStory() {
	p.t.Helper()
	for _, want := range []string{
		"(a) no lock: doors open: 160 buyers, 100 units, 4 processes",
		"(a) no lock: 160 orders for 100 units in ",
		`(b) lock only: 25 sold; process 1 has read "75 left" and is frozen, with the lock`,
		"(b) lock only: its lease ran out after ",
		`(b) lock only: 50 sold; process 1 wakes up and writes "74 left"`,
		"(b) lock only: 125 orders for 100 units in ",
		`(c) lock and fence: 25 sold; process 1 has read "75 left" and is frozen, with the lock`,
		"(c) lock and fence: 100 orders for 100 units in ",
	} {
		if !strings.Contains(p.log.String(), want) {
			p.t.Errorf("got no progress %q\n%s", want, p.text())
		}
	}
	if strings.Contains(p.text(), "\x1b") {
		p.t.Errorf("got escape codes on what is no terminal\n%q", p.text())
	}
}
