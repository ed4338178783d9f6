package guard

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

// Guard serves one profile on the stores it was given. It is safe for
// concurrent use. Two guards exclude each other if they use the same store and
// namespace, whatever their profiles.
//
// Make one with [New] for each scenario and keep it: guards on one store share
// their queues and renewals. The zero Guard is not usable.
type Guard struct {
	profile    Profile
	plan       Plan
	hub        *hub // of the lock's store; nil when the profile does not lock
	stores     []driver.Backend
	prefix     string // namespace and ':'
	origin     string // of the lock's tokens
	identity   string
	generation uint8
	handovers  int
	log        *slog.Logger
	tel        *telemetry

	closed  atomic.Bool // no new calls
	givenUp atomic.Bool // and what was under way must not begin fn any more
	active  tally       // calls under way and leases of Lock that have not ended
	repairs tally       // calls of the store, and clean-ups, that nobody may wait for any more
}

// New wires p to stores. It refuses a role of p that no store may serve.
// It does not use the network.
func New(p Profile, opts ...Option) (*Guard, error) {
	g, err := newGuard(p, opts)
	if err != nil {
		return nil, &Error{Op: "New", Profile: p.Name, Err: err}
	}
	g.log.Info("pawl: " + g.plan.String())
	return g, nil
}

func newGuard(p Profile, opts []Option) (*Guard, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	locker, err := role[driver.Locker]("Lock", p.Name, p.Lock, c.stores, c.singleProcess)
	if err != nil {
		return nil, err
	}
	ledger, err := role[driver.Ledger]("Ledger", p.Name, p.Ledger, c.stores, c.singleProcess)
	if err != nil {
		return nil, err
	}
	limiter, err := role[driver.Limiter]("Limiter", p.Name, p.Limiter, c.stores, c.singleProcess)
	if err != nil {
		return nil, err
	}
	g := &Guard{
		profile: p, prefix: c.namespace + ":", identity: c.identity, generation: c.generation,
		log: c.log, handovers: handovers(p.Handovers),
	}
	if locker != nil {
		if err := checkTTL("Profile.TTL", p.TTL, locker.Traits()); err != nil {
			return nil, err
		}
		g.hub = hubOf(locker)
		g.origin = g.hub.traits.Name + "/" + c.namespace
	}
	g.planFor(locker, ledger, limiter)
	g.tel, err = newTelemetry(g, c)
	return g, err
}

func handovers(n int) int {
	if n == 0 {
		return defaultHandovers
	}
	return max(n, 0)
}

// planFor notes which stores are in use, each once, and names them.
func (g *Guard) planFor(stores ...driver.Backend) {
	names := make([]string, len(stores))
	for i, s := range stores {
		if s == nil {
			continue
		}
		names[i] = s.Traits().Name
		known := false
		for _, k := range g.stores {
			known = known || k == s
		}
		if !known {
			g.stores = append(g.stores, s)
		}
	}
	g.plan = Plan{Profile: g.profile.Name, Lock: names[0], Ledger: names[1], Limiter: names[2]}
	g.plan.Queued = g.hub != nil && g.hub.waiter != nil
}

// Plan says which store serves what.
func (g *Guard) Plan() Plan { return g.plan }

// Check reads the deployment of the stores in use. The error says what could
// not be read.
//
// Call it at start-up and refuse to serve on a grave hazard: New does not look,
// since it does not use the network.
func (g *Guard) Check(ctx context.Context) ([]driver.Hazard, error) {
	var found []driver.Hazard
	var unread []error
	for _, s := range g.stores {
		c, ok := s.(driver.Checker)
		if !ok {
			continue
		}
		hazards, err := watch(ctx, c.Check, nil)
		found = append(found, hazards...)
		if err != nil {
			unread = append(unread, g.fail("Check", "", because(ErrUnavailable, err)))
		}
	}
	return found, errors.Join(unread...)
}

// Holder asks the store who holds key: the identity given to WithIdentity,
// "" for nobody. The answer is a moment old.
func (g *Guard) Holder(ctx context.Context, key string) (identity string, token fencing.Token, err error) {
	const op = "Holder"
	c, err := g.newCall(ctx, op, key, nil)
	if err != nil {
		return "", 0, err
	}
	v, ok := g.hub.store.(driver.Viewer)
	if !ok {
		return "", 0, g.fail(op, key, invalid("the %s store cannot say who holds a key", g.plan.Lock))
	}
	bounded, cancel := context.WithTimeout(ctx, callBound(c.ttl))
	defer cancel()
	held, err := watch(bounded, func(ctx context.Context) (driver.Grant, error) { return v.Holder(ctx, c.full) }, nil)
	if err != nil {
		return "", 0, g.fail(op, key, because(ErrUnavailable, err))
	}
	identity = held.Owner
	if i := strings.LastIndexByte(identity, '#'); i >= 0 {
		identity = identity[:i]
	}
	return identity, held.Token, nil
}

func (g *Guard) fail(op, key string, err error) *Error {
	switch {
	case strings.HasPrefix(key, refused):
		key = "" // the error says what was wrong with it
	case len(key) > maxKey:
		key = key[:64] + "..."
	}
	return &Error{Op: op, Profile: g.profile.Name, Key: key, Store: g.plan.Lock, Err: err}
}

func (g *Guard) grantOf(l *Lease) fencing.Grant {
	return fencing.Grant{Resource: l.ten.q.key, Token: l.token, Origin: g.origin}
}
