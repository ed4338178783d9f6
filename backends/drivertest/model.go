package drivertest

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

// budget bounds the random histories in real time.
const budget = 2 * time.Second

// randomHistoryFollowsModel compares random calls with a model of one key. A
// history that the machine was too slow for (a lease may have ended that the
// model has alive) is cut short: it proves nothing.
func randomHistoryFollowsModel(t *lockTest) {
	start, histories, failed := time.Now(), 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if t.h.Bubble == nil && !failed && time.Since(start) > budget {
			return
		}
		histories++
		ok := false
		defer func() { failed = failed || !ok }() // then the budget must not hinder the search for a shorter history
		m := &model{lockTest: t, rt: rt, key: fmt.Sprintf("k%d", histories)}
		for range rapid.IntRange(1, 24).Draw(rt, "calls") {
			if !m.step() {
				break
			}
		}
		ok = true
	})
}

// model is what is known of one key.
type model struct {
	*lockTest
	rt   *rapid.T
	key  string
	last fencing.Token
	held *driver.Grant // the live hold
	old  []past        // holds that ended
}

// past is a hold that ended, by release or by time.
type past struct {
	driver.Grant
	released  bool
	succeeded bool // another came
}

// step makes one call; false ends the history.
func (m *model) step() bool {
	l := m.a
	if rapid.Bool().Draw(m.rt, "other process") {
		l = m.b
	}
	name := rapid.SampledFrom([]string{
		"acquire", "acquire", "acquire", "repeat", "renew", "renew", "forge", "steal", "release", "release", "repair", "renewOld", "releaseOld", "expire",
	}).Draw(m.rt, "call")
	// Waiting for a lease is what takes time on a real store: seldom there.
	if name == "expire" && m.h.Bubble == nil && m.h.Expire == nil && rapid.IntRange(0, 3).Draw(m.rt, "wait") > 0 {
		name = "acquire"
	}
	switch {
	case name == "acquire":
		return m.acquire(l, m.brief(m.key))
	case name == "renewOld" && len(m.old) > 0:
		return m.renew(l, m.anyOld().Grant)
	case name == "releaseOld" && len(m.old) > 0:
		return m.releaseOld(l, m.anyOld())
	case m.held != nil:
		return m.stepHeld(l, name)
	}
	return true
}

// stepHeld makes a call that needs a live hold.
func (m *model) stepHeld(l driver.Locker, name string) bool {
	switch g := *m.held; name {
	case "repeat":
		return m.acquire(l, g.Request)
	case "renew":
		return m.renew(l, g)
	case "forge":
		return m.renew(l, m.forged())
	case "steal":
		return m.steal(l)
	case "release":
		return m.release(l, g)
	case "repair":
		return m.release(l, driver.Grant{Request: g.Request})
	case "expire":
		return m.expire(l)
	}
	return true
}

func (m *model) anyOld() past { return rapid.SampledFrom(m.old).Draw(m.rt, "hold") }

// forged is the live hold with something wrong.
func (m *model) forged() driver.Grant {
	g := *m.held
	if rapid.Bool().Draw(m.rt, "token") {
		g.Token += 512
	} else {
		g.Owner = m.owner()
	}
	return g
}

// late reports that the live hold may have ended on the store.
func (m *model) late() bool { return m.held != nil && !time.Now().Before(m.held.Until) }

func (m *model) acquire(l driver.Locker, r driver.Request) bool {
	g, err := l.Acquire(m.Context(), r)
	if m.late() {
		return false
	}
	switch {
	case m.held == nil:
		if err != nil || g.Token <= m.last {
			m.rt.Fatalf("Acquire of a free key: got token %d, %v, want one more than %d, nil", g.Token, err, m.last)
		}
		for i := range m.old {
			m.old[i].succeeded = true
		}
		m.held, m.last = &g, g.Token
	case m.held.Owner == r.Owner:
		if err != nil || g.Token != m.held.Token {
			m.rt.Fatalf("Acquire repeated: got token %d, %v, want %d, nil", g.Token, err, m.held.Token)
		}
	case !errors.Is(err, driver.ErrBusy):
		m.rt.Fatalf("Acquire of a held key: got %v, want ErrBusy", err)
	}
	return true
}

func (m *model) renew(l driver.Locker, g driver.Grant) bool {
	renewed, err := l.Renew(m.Context(), g)
	if m.late() {
		return false
	}
	if m.held == nil || m.held.Owner != g.Owner || m.held.Token != g.Token {
		if !errors.Is(err, driver.ErrLost) {
			m.rt.Fatalf("Renew of no live hold: got %v, want ErrLost", err)
		}
		return true
	}
	if err != nil || renewed.Token != g.Token {
		m.rt.Fatalf("Renew of the live hold: got token %d, %v, want %d, nil", renewed.Token, err, g.Token)
	}
	m.held = &renewed
	return true
}

func (m *model) release(l driver.Locker, g driver.Grant) bool {
	err := l.Release(m.Context(), g)
	if m.late() {
		return false
	}
	if err != nil {
		m.rt.Fatalf("Release of the live hold: got %v, want nil", err)
	}
	m.end(true)
	return true
}

// steal releases the live hold as somebody else.
func (m *model) steal(l driver.Locker) bool {
	g := *m.held
	g.Owner = m.owner()
	if err := l.Release(m.Context(), g); !errors.Is(err, driver.ErrLost) {
		m.rt.Fatalf("Release by another owner: got %v, want ErrLost", err)
	}
	return true
}

// releaseOld changes nothing. It is ErrLost after another came, unless the hold
// was given back before: then it may be taken for a retry.
func (m *model) releaseOld(l driver.Locker, p past) bool {
	err := l.Release(m.Context(), p.Grant)
	if m.late() {
		return false
	}
	if retry := err == nil && (p.released || !p.succeeded); !retry && !errors.Is(err, driver.ErrLost) {
		m.rt.Fatalf("Release of a hold that ended: got %v, want ErrLost", err)
	}
	return true
}

func (m *model) expire(l driver.Locker) bool {
	m.lockTest.expire(l, *m.held)
	if m.h.Bubble == nil {
		time.Sleep(m.h.TTL / 4) // the store's clock decides
	}
	m.end(false)
	return true
}

func (m *model) end(released bool) {
	m.old = append(m.old, past{Grant: *m.held, released: released})
	m.held = nil
}
