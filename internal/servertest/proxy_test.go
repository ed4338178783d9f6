package servertest_test

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/servertest"
)

func start(t *testing.T) (*echo, *servertest.Proxy, *client) {
	t.Helper()
	e := newEcho(t)
	p := servertest.NewProxy(t, e.addr())
	c := dial(t, p.Addr())
	c.send(t, "hello")
	c.expect(t, "hello")
	e.arrived(t, "hello")
	return e, p, c
}

func TestProxy_DelaysBothDirections(t *testing.T) {
	e, p, c := start(t)
	const delay = 200 * time.Millisecond
	p.Delay(delay)
	sent := time.Now()
	c.send(t, "a")
	e.arrived(t, "a")
	if got := time.Since(sent); got < delay {
		t.Errorf("the request took %v, want at least %v", got, delay)
	}
	c.expect(t, "a")
	if got := time.Since(sent); got < 2*delay {
		t.Errorf("the round trip took %v, want at least %v", got, 2*delay)
	}
	p.Delay(0)
	sent = time.Now()
	c.send(t, "b")
	c.expect(t, "b")
	if got := time.Since(sent); got >= delay {
		t.Errorf("the round trip took %v without delay, want less than %v", got, delay)
	}
}

func TestProxy_DelayIsLatencyNotThroughput(t *testing.T) {
	_, p, c := start(t)
	const delay, n = 50 * time.Millisecond, 20
	p.Delay(delay)
	sent := time.Now()
	for i := range n {
		c.send(t, strconv.Itoa(i))
		time.Sleep(time.Millisecond) // so that each is a chunk of its own
	}
	for i := range n {
		c.expect(t, strconv.Itoa(i))
	}
	if got := time.Since(sent); got > n*delay {
		t.Errorf("%d overlapping requests took %v, want about %v", n, got, 2*delay)
	}
}

func TestProxy_CutClosesAndRefusesUntilHeal(t *testing.T) {
	_, p, c := start(t)
	p.Cut()
	c.expectClosed(t)
	if conn, err := net.DialTimeout("tcp", p.Addr(), time.Second); err == nil {
		conn.Close()
		t.Fatal("got a connection while cut, want it refused")
	}
	p.Heal()
	c = dial(t, p.Addr())
	c.send(t, "again")
	c.expect(t, "again")
}

func TestProxy_HoldKeepsConnectionsAndBytes(t *testing.T) {
	e, p, c := start(t)
	p.Hold()
	late := dial(t, p.Addr())
	c.send(t, "held")
	late.send(t, "held on a new connection")
	c.expectSilence(t)
	late.expectSilence(t)
	select {
	case got := <-e.lines:
		t.Fatalf("the server got %q while held, want nothing", got)
	default:
	}
	p.Heal()
	c.expect(t, "held")
	late.expect(t, "held on a new connection")
}

func TestProxy_HeldRequestLandsAfterTheClientHasLeft(t *testing.T) {
	e, p, c := start(t)
	p.Hold()
	c.send(t, "late")
	c.expectSilence(t)
	c.conn.Close()
	p.Heal()
	e.arrived(t, "late")
}

func TestProxy_HoldRepliesLetsRequestsPass(t *testing.T) {
	e, p, c := start(t)
	p.HoldReplies()
	c.send(t, "passes")
	e.arrived(t, "passes")
	c.expectSilence(t)
	p.Heal()
	c.expect(t, "passes")
}

func TestProxy_DropNextReplyLosesOneReply(t *testing.T) {
	e, p, c := start(t)
	p.DropNextReply()
	dropped := p.Dropped()
	select {
	case <-dropped:
		t.Fatal("dropped before any request")
	default:
	}
	c.send(t, "lost")
	e.arrived(t, "lost")
	c.expectClosed(t)
	await(t, dropped)
	c = dial(t, p.Addr())
	c.send(t, "next")
	c.expect(t, "next")
}

func TestProxy_DropReplyAfterWaitsForItsRequest(t *testing.T) {
	e, p, c := start(t)
	other := dial(t, p.Addr())
	p.DropReplyAfter([]byte("COMMIT"))
	for _, line := range []string{"BEGIN", "COMM", "UPDATE"} {
		c.send(t, line)
		c.expect(t, line)
		e.arrived(t, line)
	}
	c.send(t, "COMMIT 1")
	e.arrived(t, "COMMIT 1")
	c.expectClosed(t)
	await(t, p.Dropped())
	other.send(t, "COMMIT 2")
	other.expect(t, "COMMIT 2")
}

func TestProxy_DropReplyAfterMatchesAcrossReads(t *testing.T) {
	_, p, c := start(t)
	p.DropReplyAfter([]byte("COMMIT"))
	if _, err := c.conn.Write([]byte("COM")); err != nil {
		t.Fatal(err)
	}
	c.expectSilence(t) // long enough for a read of its own
	c.send(t, "MIT")
	c.expectClosed(t)
	await(t, p.Dropped())
}

func TestProxy_DropHappensWhenTheClientLeavesFirst(t *testing.T) {
	e, p, c := start(t)
	p.HoldReplies()
	p.DropReplyAfter([]byte("lost"))
	c.send(t, "lost")
	e.arrived(t, "lost")
	p.Cut()
	await(t, p.Dropped())
}

func TestProxy_DroppedBlocksWhenNothingWasArmed(t *testing.T) {
	_, p, _ := start(t)
	select {
	case <-p.Dropped():
		t.Fatal("got a drop that nobody asked for")
	default:
	}
}

func TestProxy_SetTargetMovesNewConnections(t *testing.T) {
	_, p, old := start(t)
	second := newEcho(t)
	p.SetTarget(second.addr())
	c := dial(t, p.Addr())
	c.send(t, "moved")
	c.expect(t, "moved")
	second.arrived(t, "moved")
	old.send(t, "stays")
	old.expect(t, "stays")
	p.Cut()
	old.expectClosed(t)
}

func TestProxy_ClosesTheClientWhenTheServerIsDown(t *testing.T) {
	e := newEcho(t)
	p := servertest.NewProxy(t, e.addr())
	e.close()
	dial(t, p.Addr()).expectClosed(t)
}

func TestProxy_LeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("Held", func(t *testing.T) {
		_, p, c := start(t)
		p.Delay(time.Hour)
		c.send(t, "delayed")
		p.Hold()
		dial(t, p.Addr())
		c.send(t, "held")
	})
	goleak.VerifyNone(t, before)
}

// TestProxy_SurvivesConcurrentUse is for the race detector, and proves that a proxy
// heals whatever it went through.
func TestProxy_SurvivesConcurrentUse(t *testing.T) {
	_, p, _ := start(t)
	faults := []func(){
		p.Cut, p.Hold, p.HoldReplies, p.Heal, p.DropNextReply,
		func() { p.Delay(time.Millisecond) }, func() { p.DropReplyAfter([]byte("x")) },
		func() { p.SetTarget("127.0.0.1:1") },
	}
	var wg sync.WaitGroup
	for i := range faults {
		wg.Go(func() {
			for j := range 30 {
				if j%3 == 0 {
					faults[i]()
				} else {
					p.Heal()
				}
			}
		})
		wg.Go(func() {
			for range 30 {
				useOnce(p.Addr())
			}
		})
	}
	wg.Wait()
}

// useOnce makes a request that may fail.
func useOnce(addr string) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("x\n")); err != nil {
		return
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 8)) // whatever comes
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("waited 5 s in vain")
	}
}
