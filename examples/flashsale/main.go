// Flashsale sells more units than it has, twice, and then exactly what it has.
//
// It starts several processes of itself that sell the units of one item from one
// database: without a lock, with a lock only, and with a lock and a fence. In the
// last two rows one holder is frozen in the middle of its critical section until
// its lease has run out. Run it with -h to read what is shown and how.
//
// The code of the shop is in sell.go, and what protects it in protect.go. The
// rest conducts the processes (sale.go, crew.go, worker.go), judges what they
// did (verdict.go) and prints it (table.go).
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	exitAsExpected  = 0
	exitUnexpected  = 1 // a protected row is wrong, an unprotected one shows no harm, or the program failed
	exitUsage       = 2
	exitInterrupted = 130 // as shells say it of Ctrl-C
)

func main() {
	if os.Getenv(roleVariable) == roleShop {
		os.Exit(work(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, out, errs *os.File) int {
	text, code := perform(ctx, args, newScreen(errs), isTerminal(out) && os.Getenv("NO_COLOR") == "")
	if _, err := out.WriteString(text); err != nil && code == exitAsExpected {
		return exitUnexpected // nobody can have read it
	}
	return code
}

// perform returns what is printed at the end, and the exit status.
func perform(ctx context.Context, args []string, screen *screen, colored bool) (text string, code int) {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return help(), exitAsExpected
	case err != nil:
		screen.say("flashsale: %v\nflashsale: -h explains every flag", err)
		return "", exitUsage
	}
	began := time.Now()
	caption, results, err := sellAll(ctx, o, screen)
	switch {
	case ctx.Err() != nil && !errors.Is(err, errLeft):
		screen.say("flashsale: interrupted; all processes have ended, nothing is left behind")
		return "", exitInterrupted
	case err != nil:
		screen.say("flashsale: %s", oneLine(err))
		return "", exitUnexpected
	}
	return conclude(caption, results, time.Since(began), colored)
}

// oneLine is for the errors of drivers that write several.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
