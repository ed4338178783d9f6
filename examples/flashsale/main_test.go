package main_test

import (
	"database/sql"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/glebarez/go-sqlite" // the driver "sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"

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
	if want := "60 units, 100 buyers, 4 processes; stock on sqlite, lock on sqlite"; !strings.Contains(p.out.String(), want) {
		t.Errorf("got no caption %q\n%s", want, p.text())
	}
	p.checkTable(60, 100)
	p.checkStory()
}

func TestFlashsale_RunsOnServers(t *testing.T) {
	redis := func(t *testing.T) string { return "redis://" + servertest.Redis(t).Addr }
	cases := []struct {
		name  string
		flags func(t *testing.T) []string
	}{
		{"RedisAndPostgres", func(t *testing.T) []string { return []string{"-lock", redis(t), "-db", servertest.PostgresDB(t)} }},
		{"RedisAndMariaDB", func(t *testing.T) []string { return []string{"-lock", redis(t), "-db", mariaDB(t)} }},
		{"Postgres", func(t *testing.T) []string { return []string{"-db", servertest.PostgresDB(t)} }},
		{"MariaDB", func(t *testing.T) []string { return []string{"-db", mariaDB(t)} }},
		{"RedisAndSQLite", func(t *testing.T) []string { return []string{"-lock", redis(t)} }},
	}
	for _, c := range cases[:servertest.Count(3, len(cases))] {
		t.Run(c.name, func(t *testing.T) {
			p, code := perform(t, append(c.flags(t), "-units", "16", "-buyers", "24", "-processes", "3")...)
			if code != 0 {
				t.Fatalf("got exit status %d, want 0\n%s", code, p.text())
			}
			p.checkTable(16, 24)
		})
	}
}

func TestFlashsale_KeepsItsPromiseWithTheFewest(t *testing.T) {
	p, code := perform(t, "-units", "1", "-buyers", "2", "-processes", "2")
	if code != 0 {
		t.Fatalf("got exit status %d, want 0\n%s", code, p.text())
	}
	p.checkTable(1, 2)
}

func TestFlashsale_EmptiesTheTablesInADatabaseOfYours(t *testing.T) {
	file := servertest.SQLiteFile(t)
	p, code := perform(t, "-db", file, "-units", "4", "-buyers", "8")
	if code != 0 {
		t.Fatalf("got exit status %d, want 0\n%s", code, p.text())
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"flashsale_items", "flashsale_orders"} {
		var rows int
		if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("got %d rows in %s (%v), want an empty table", rows, table, err)
		}
	}
}

// mariaDB is a fresh database as -db wants it.
func mariaDB(t *testing.T) string {
	t.Helper()
	c, err := mysqldriver.ParseDSN(servertest.MariaDBDB(t))
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "mysql", User: url.UserPassword(c.User, c.Passwd), Host: c.Addr, Path: c.DBName}
	return u.String()
}

// checkTable compares the table with what is certain: in (b) at least the
// quarter that was sold while the holder was frozen is sold again.
func (p *program) checkTable(units, buyers int) {
	p.t.Helper()
	quarter := units / 4
	p.checkRow("(a) no lock", "HARM, as expected",
		is(units), is(buyers), is(buyers-units), atLeast(1), dash(), dash(), atLeast(1))
	p.checkRow("(b) lock only", "HARM, as expected",
		is(units), atLeast(units+quarter), atLeast(quarter), atLeast(quarter), dash(), atLeast(1), atLeast(1))
	p.checkRow("(c) lock and fence", "OK, exact",
		is(units), is(units), is(0), is(0), atLeast(1), atLeast(1), atLeast(1))
}

// cell is what must stand in one.
type cell struct {
	want string
	ok   func(got string) bool
}

func dash() cell { return cell{"-", func(got string) bool { return got == "-" }} }

func is(n int) cell {
	return cell{strconv.Itoa(n), func(got string) bool { return got == strconv.Itoa(n) }}
}

func atLeast(n int) cell {
	return cell{"at least " + strconv.Itoa(n), func(got string) bool {
		v, err := strconv.Atoi(got)
		return err == nil && v >= n
	}}
}

// checkRow takes the cells units, sold, oversold, double sold, stale refused,
// waits, orders/s.
func (p *program) checkRow(label, verdict string, want ...cell) {
	p.t.Helper()
	got, gotVerdict := p.row(label)
	if gotVerdict != verdict {
		p.t.Errorf("%s: got verdict %q, want %q\n%s", label, gotVerdict, verdict, p.text())
	}
	for i, c := range want {
		if !c.ok(got[i]) {
			p.t.Errorf("%s: got %s in column %d, want %s\n%s", label, got[i], i+1, c.want, p.text())
		}
	}
}

// checkStory looks for the progress of somebody who does not see a terminal.
func (p *program) checkStory() {
	p.t.Helper()
	for _, want := range []string{
		"(a) no lock: doors open: 100 buyers, 60 units, 4 processes",
		"(a) no lock: 100 orders for 60 units in ",
		`(b) lock only: 15 sold; process 1 has read "45 left" and is frozen, with the lock`,
		"(b) lock only: its lease ran out after ",
		`(b) lock only: 30 sold; process 1 wakes up and writes "44 left"`,
		"(b) lock only: 75 orders for 60 units in ",
		`(c) lock and fence: 15 sold; process 1 has read "45 left" and is frozen, with the lock`,
		"(c) lock and fence: 60 orders for 60 units in ",
	} {
		if !strings.Contains(p.log.String(), want) {
			p.t.Errorf("got no progress %q\n%s", want, p.text())
		}
	}
	if strings.Contains(p.text(), "\x1b") {
		p.t.Errorf("got escape codes on what is no terminal\n%q", p.text())
	}
}
