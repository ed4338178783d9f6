package main_test

import (
	"strings"
	"testing"
)

func TestFlashsale_ExplainsItself(t *testing.T) {
	p, code := perform(t, "-h")
	if code != 0 || p.log.Len() > 0 {
		t.Fatalf("got exit status %d, want 0 and no progress\n%s", code, p.text())
	}
	for _, want := range []string{
		"usage: go run ./examples/flashsale", "(a) no lock", "(b) lock only", "(c) lock and fence", "exit status",
		"-lock URL", "-db URL", "-buyers N", "default 100", "-units N", "default 60", "-processes N", "default 4",
		"for 3 ms", "lease of 1 s", "more than 5 ms",
	} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("got no %q in\n%s", want, p.out.String())
		}
	}
	for line := range strings.Lines(p.out.String()) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("got a line of %d columns, want at most 80: %s", n, line)
		}
	}
}

func TestFlashsale_RefusesFlagsThatCannotWork(t *testing.T) {
	for _, c := range []struct {
		name string
		args string
		code int
		want []string // named by the error: the flag, and the fix
	}{
		{"AsManyUnitsAsBuyers", "-units 100", 2, []string{"-buyers 100", "-units 100", "raise -buyers or lower -units"}},
		{"NoUnits", "-units 0", 2, []string{"-units 0", "use 1 or more"}},
		{"OneProcess", "-processes 1", 2, []string{"-processes 1", "use 2 to 16"}},
		{"TooManyProcesses", "-processes 17", 2, []string{"-processes 17", "use 2 to 16"}},
		{"TooManyBuyers", "-buyers 10001", 2, []string{"-buyers 10001", "at most 10000"}},
		{"FewerBuyersThanProcesses", "-buyers 3 -units 2", 2, []string{"-buyers 3", "-processes 4"}},
		{"NoNumber", "-units many", 2, []string{"-units"}},
		{"NoFlag", "redis", 2, []string{`"redis"`, "-name value"}},
		{"UnknownFlag", "-speed 3", 2, []string{"-speed"}},
		{"UnknownLock", "-lock carrier://pigeon", 2, []string{"-lock", `"carrier://"`, "redis://host:port"}},
		{"LockThatIsNoURL", "-lock localhost", 2, []string{"-lock", `"localhost"`, "redis://host:port"}},
		{"LockWithoutHost", "-lock redis://", 2, []string{"-lock", "names no host"}},
		{"UnknownDatabase", "-db oracle://h/x", 2, []string{"-db", `"oracle://"`, "postgres://"}},
		{"DatabaseInMemory", "-db :memory:", 2, []string{"-db", "path of a file"}},
		{"DatabaseWithoutHost", "-db postgres:///x", 2, []string{"-db", "names no host"}},
		{"DatabaseWithoutName", "-db mysql://h", 2, []string{"-db", "names no database"}},
		{"PostgresThatIsNotThere", "-db postgres://127.0.0.1:1/x", 1, []string{"-db", "refused"}},
		{"MySQLThatIsNotThere", "-db mysql://127.0.0.1:1/x", 1, []string{"-db", "refused"}},
		{"RedisThatIsNotThere", "-lock redis://127.0.0.1:1", 1, []string{"-lock redis://127.0.0.1:1 does not answer"}},
		{"FileThatCannotBe", "-db /dev/null/shop.db", 1, []string{"-db"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, code := perform(t, strings.Fields(c.args)...)
			if code != c.code || p.out.Len() > 0 {
				t.Errorf("got exit status %d, want %d and no table\n%s", code, c.code, p.text())
			}
			for _, want := range c.want {
				if !strings.Contains(p.log.String(), want) {
					t.Errorf("got no %q in %s", want, p.log.String())
				}
			}
			if strings.Contains(p.log.String(), "doors open") {
				t.Errorf("got a sale, want none\n%s", p.log.String())
			}
		})
	}
}

// Passwords do not belong into logs.
func TestFlashsale_KeepsPasswordsToItself(t *testing.T) {
	for _, args := range []string{
		"-db postgres://shop:hunter2@127.0.0.1:1/x", "-db mysql://shop:hunter2@127.0.0.1:1/x", "-db mysql://shop:hunter2@127.0.0.1",
		"-db mysql://shop:hunter2%@h/x", "-lock redis://shop:hunter2@127.0.0.1:1", "-lock redis://shop:hunter2@h/%", "-lock redis://shop:hunter2@",
		"-lock redis://shop:hunter2@127.0.0.1:1/many",
	} {
		p, code := perform(t, strings.Fields(args)...)
		if code == 0 || strings.Contains(p.text(), "hunter2") {
			t.Errorf("%s: got exit status %d and\n%s\nwant an error without the password", args, code, p.text())
		}
	}
}
