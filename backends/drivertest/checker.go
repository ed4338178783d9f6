package drivertest

import (
	"github.com/pawl-go/pawl/backends/driver"
)

// checkNamesWholeHazards reads the deployment. What it finds depends on the
// deployment; that a hazard says what to do about it does not.
func checkNamesWholeHazards(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	hazards, err := t.a.(driver.Checker).Check(t.soon())
	if err != nil {
		t.Logf("Check could not read everything: %v", err)
	}
	for _, h := range hazards {
		if h.Store == "" || h.Setting == "" || h.Breaks == "" || h.Fix == "" {
			t.Errorf("hazard: got %+v, want store, setting, what it breaks and a fix", h)
		}
	}
	t.renew(t.a, g) // looking changes nothing
	t.wantBusy(t.b, "k")
}
