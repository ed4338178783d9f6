package gormstore_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func TestStore_HolderSaysWhoAndHowLong(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, _ := d.migrated(t, dsn)
			r := request("k")
			r.Generation = 9
			g := acquire(t, s, r)
			got, err := s.Holder(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if got.Key != g.Key || got.Owner != g.Owner || got.Token != g.Token || got.Generation != 9 {
				t.Errorf("Holder: got %+v, want %+v", got, g)
			}
			if got.TTL <= r.TTL-10*time.Second || got.TTL > r.TTL+time.Second {
				t.Errorf("time left: got %v, want about %v", got.TTL, r.TTL)
			}
			release(t, s, got)
			if got, err = s.Holder(t.Context(), "k"); err != nil || got != (driver.Grant{}) {
				t.Errorf("Holder of a free key: got %+v and %v, want nobody", got, err)
			}
		})
	}
}
