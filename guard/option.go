package guard

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl/backends/driver"
)

// Option wires a Guard; it carries objects, a Profile carries values.
type Option interface{ apply(*config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

type config struct {
	stores        []driver.Backend
	singleProcess bool
	namespace     string
	identity      string
	generation    uint8
	log           *slog.Logger
	tracing       trace.TracerProvider
	metering      metric.MeterProvider
}

const (
	defaultNamespace = "pawl"
	maxNamespace     = 64  // bytes
	maxIdentity      = 128 // bytes
	maxGeneration    = 63
)

func configure(opts []Option) (*config, error) {
	c := &config{namespace: defaultNamespace, identity: defaultIdentity(), log: slog.Default()}
	for i, o := range opts {
		if o == nil {
			return nil, invalid("option %d is nil", i+1)
		}
		if err := o.apply(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", strings.ToValidUTF8(host[:min(len(host), maxIdentity-16)], "?"), os.Getpid())
}

// On lists the stores. Each serves the roles it implements (driver.Locker,
// Ledger, Limiter) and the profile accepts.
func On(stores ...driver.Backend) Option {
	return optionFunc(func(c *config) error {
		for i, s := range stores {
			if err := checkStore(i, s); err != nil {
				return err
			}
		}
		c.stores = append(c.stores, stores...)
		return nil
	})
}

// SingleProcess accepts stores that exclude inside this process only.
func SingleProcess() Option {
	return optionFunc(func(c *config) error { c.singleProcess = true; return nil })
}

// WithNamespace sets the key space, for every store alike. Guards of different
// namespaces never meet. Default: "pawl".
func WithNamespace(name string) Option {
	return optionFunc(func(c *config) error {
		if name == "" || len(name) > maxNamespace || !plain(name) || strings.Contains(name, ":") {
			return invalid("WithNamespace(%q): use 1 to %d bytes of printable text without ':'", name, maxNamespace)
		}
		c.namespace = name
		return nil
	})
}

// WithIdentity names this process to operators (Holder). Default: host name
// and process id.
func WithIdentity(name string) Option {
	return optionFunc(func(c *config) error {
		if name == "" || len(name) > maxIdentity || !plain(name) {
			return invalid("WithIdentity(%q): use 1 to %d bytes of printable text", name, maxIdentity)
		}
		c.identity = name
		return nil
	})
}

// WithGeneration is raised, everywhere at once, after a key space moved to
// another store or was restored. Default zero, at most 63.
func WithGeneration(n uint8) Option {
	return optionFunc(func(c *config) error {
		if n > maxGeneration {
			return invalid("WithGeneration(%d): at most %d", n, maxGeneration)
		}
		c.generation = n
		return nil
	})
}

// WithLogger receives what operators should know: the plan, lost leases, stores
// that do not answer. Keys appear, since they name resources. Default:
// slog.Default().
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(c *config) error {
		if l == nil {
			return invalid("WithLogger(nil): pass slog.New(slog.DiscardHandler) for silence")
		}
		c.log = l
		return nil
	})
}

// WithTelemetry reports to OpenTelemetry: waits, holds, renewal lag, losses by
// cause, hand-overs. Either may be nil. Default: nothing is reported; the global
// providers are not consulted.
func WithTelemetry(tp trace.TracerProvider, mp metric.MeterProvider) Option {
	return optionFunc(func(c *config) error {
		c.tracing, c.metering = tp, mp
		return nil
	})
}

func plain(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
