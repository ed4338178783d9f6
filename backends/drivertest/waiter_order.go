package drivertest

import (
	"errors"

	"github.com/pawl-go/pawl/backends/driver"
)

func orderCases() []lockCase {
	return []lockCase{{"WaitsAreServedInOrder", waitsAreServedInOrder}}
}

// A store with Traits.FIFO serves in order of arrival over all processes, and
// nobody who only tries gets in between.
func waitsAreServedInOrder(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	const queued = 5
	var ends [queued]<-chan answer
	for i := range ends {
		l := t.a
		if i%2 == 0 {
			l = t.b
		}
		ends[i] = t.wait(t.soon(), l, t.request("k"))
		t.settle()
	}
	last := g.Token
	for i, ended := range ends {
		t.release(t.a, g)
		if _, err := t.a.Acquire(t.Context(), t.request("k")); !errors.Is(err, driver.ErrBusy) {
			t.Fatalf("Acquire beside %d waits: got %v, want ErrBusy", queued-i, err)
		}
		g = t.wantServed(ended)
		for _, later := range ends[i+1:] {
			t.wantWaiting(later)
		}
		if g.Token <= last {
			t.Fatalf("token of wait %d: got %d, want more than %d", i+1, g.Token, last)
		}
		last = g.Token
	}
}
