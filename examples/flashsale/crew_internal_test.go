//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
)

func TestCrew_TellsOfAProcessThatDied(t *testing.T) {
	c, err := hire(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	if err := c.members[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-c.reports:
		if r.Is != ended || r.Process != 1 || !strings.Contains(r.Text, "killed") {
			t.Errorf("got %+v, want the end of process 1, killed", r)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("got no report after 10 s, want one")
	}
}

func TestCrew_StopsAFrozenProcess(t *testing.T) {
	c, err := hire(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	if err := c.freeze(0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c.stop()
	if took := time.Since(began); took >= patience {
		t.Errorf("got %v for the stop, want less than %v, after which it kills", took, patience)
	}
	for i, m := range c.members {
		if state := m.cmd.ProcessState; state == nil || !state.Exited() {
			t.Errorf("process %d: got state %v, want an exit by itself", i, state)
		}
	}
}

func TestCrew_DismissesInOrder(t *testing.T) {
	c, err := hire(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	if err := c.dismiss(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
