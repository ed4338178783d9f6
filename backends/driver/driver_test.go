package driver_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/backends/driver"
)

func TestConsistency_TextRoundTrip(t *testing.T) {
	for want, text := range map[driver.Consistency]string{
		driver.Local: "local", driver.Async: "async", driver.Primary: "primary", driver.Consensus: "consensus",
	} {
		b, err := json.Marshal(want)
		if err != nil || string(b) != `"`+text+`"` {
			t.Errorf("Marshal(%v): got %s, %v, want %q", want, b, err, text)
		}
		var got driver.Consistency
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("Unmarshal(%s): got %v, %v, want %v", b, got, err, want)
		}
		if want.String() != text {
			t.Errorf("String: got %q, want %q", want.String(), text)
		}
	}
}

// Better guarantees are greater.
func TestConsistency_IsOrdered(t *testing.T) {
	if driver.Local >= driver.Async || driver.Async >= driver.Primary || driver.Primary >= driver.Consensus {
		t.Error("order: got another, want Local, Async, Primary, Consensus")
	}
}

func TestConsistency_RefusesInvalidValues(t *testing.T) {
	for _, c := range []driver.Consistency{0, driver.Consensus + 1, 255} {
		if b, err := c.MarshalText(); err == nil {
			t.Errorf("MarshalText of %d: got %q, want an error", uint8(c), b)
		}
		if got := c.String(); !strings.Contains(got, "consistency(") {
			t.Errorf("String of %d: got %q, want it to show the number", uint8(c), got)
		}
	}
}

func TestConsistency_RefusesUnknownTexts(t *testing.T) {
	for _, text := range []string{"", "Local", "local ", "strong", "consistency(1)", "\x00"} {
		got := driver.Primary
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText(%q): got %v, want an error", text, got)
		}
		if got != driver.Primary {
			t.Errorf("value after a failed UnmarshalText(%q): got %v, want it unchanged", text, got)
		}
	}
}

func TestHazard_StringIsOneLine(t *testing.T) {
	h := driver.Hazard{Store: "redis", Setting: "maxmemory-policy allkeys-lru", Breaks: "exclusion", Fix: "use noeviction"}
	if got, want := h.String(), "redis: maxmemory-policy allkeys-lru breaks exclusion; use noeviction"; got != want {
		t.Errorf("String: got %q, want %q", got, want)
	}
	h.Grave = true
	if got := h.String(); !strings.HasPrefix(got, "grave: ") {
		t.Errorf("String of a grave hazard: got %q, want it marked", got)
	}
}

func TestErrors_AreTwo(t *testing.T) {
	if errors.Is(driver.ErrBusy, driver.ErrLost) || errors.Is(driver.ErrLost, driver.ErrBusy) {
		t.Error("ErrBusy and ErrLost: got one, want two")
	}
}
