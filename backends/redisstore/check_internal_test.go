package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// sound is what a server without hazards says.
func sound(now time.Time) map[string]string {
	return map[string]string{
		"redis_version": "7.0.15", "role": "master", "connected_slaves": "2", "min_slaves_good_slaves": "2", "aof_enabled": "1",
		"maxmemory_policy": "noeviction", "maxmemory": "0", "server_time_usec": strconv.FormatInt(now.UnixMicro(), 10),
	}
}

func TestExamine_NamesEachHazard(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		field, value string // "-" removes the field
		setting      string // "" for no hazard
		grave        bool
	}{
		{"role", "master", "", false},
		{"redis_version", "7.0.0", "", false},
		{"redis_version", "8.2.1", "", false},
		{"redis_version", "10.0.0", "", false},
		{"redis_version", "6.2.14", "version 6.2.14", false},
		{"redis_version", "unstable", "version unstable", false},
		{"role", "slave", "role replica", false},
		{"aof_enabled", "0", "appendonly no", true},
		{"maxmemory_policy", "allkeys-lru", "maxmemory-policy allkeys-lru", false}, // no limit, so nothing is evicted yet
		{"min_slaves_good_slaves", "-", "min-replicas-to-write 0", true},
		{"server_time_usec", strconv.FormatInt(now.Add(-3*time.Second).UnixMicro(), 10), "clock", false},
		{"server_time_usec", strconv.FormatInt(now.Add(3*time.Second).UnixMicro(), 10), "clock", false},
		{"server_time_usec", strconv.FormatInt(now.Add(900*time.Millisecond).UnixMicro(), 10), "", false},
	} {
		info := sound(now)
		if info[test.field] = test.value; test.value == "-" {
			delete(info, test.field)
		}
		hazards, err := examine(info, now, now.Add(10*time.Millisecond))
		if err != nil {
			t.Errorf("%s %s: got %v, want nil", test.field, test.value, err)
		}
		if test.setting == "" {
			if len(hazards) != 0 {
				t.Errorf("%s %s: got %v, want no hazard", test.field, test.value, hazards)
			}
			continue
		}
		if len(hazards) != 1 || !strings.HasPrefix(hazards[0].Setting, test.setting) || hazards[0].Grave != test.grave {
			t.Errorf("%s %s: got %v, want %s, grave: %v", test.field, test.value, hazards, test.setting, test.grave)
			continue
		}
		if h := hazards[0]; h.Store == "" || h.Breaks == "" || h.Fix == "" {
			t.Errorf("%s %s: got %+v, want what it breaks and how to fix it", test.field, test.value, h)
		}
	}
}

func TestExamine_EvictionIsGraveUnderALimit(t *testing.T) {
	now := time.Now()
	info := sound(now)
	info["maxmemory_policy"], info["maxmemory"] = "volatile-ttl", "1000000"
	if hazards, err := examine(info, now, now); err != nil || len(hazards) != 1 || !hazards[0].Grave {
		t.Errorf("got %v, %v, want one grave hazard", hazards, err)
	}
}

// A field that is not there was not looked at: that is an error, not a clean bill.
func TestExamine_SaysWhatItCouldNotRead(t *testing.T) {
	now := time.Now()
	for name := range sound(now) {
		if name == "min_slaves_good_slaves" {
			continue // its absence is the finding
		}
		info := sound(now)
		delete(info, name)
		if _, err := examine(info, now, now); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got %v, want an error that names it", name, err)
		}
	}
}

func TestFindings_NamesTheFirstNodeOfEachHazard(t *testing.T) {
	var f findings
	h := driver.Hazard{Setting: "appendonly no"}
	f.add([]driver.Hazard{h}, " at a")
	f.add([]driver.Hazard{h, {Setting: "role replica"}}, " at b")
	got := f.list()
	if len(got) != 2 || got[0].Setting != "appendonly no at a" || got[1].Setting != "role replica at b" {
		t.Errorf("got %v, want one hazard at a and one at b", got)
	}
}
