package redisstore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/fencing"
)

// What the fence cannot judge by the first argument is refused, not passed
// through unfenced or under somebody else's register.
func TestFenced_RefusesCommandsThatItCannotJudge(t *testing.T) {
	f, plain := fenced(t)
	first, _, _ := succession(t)
	plain.Set(t.Context(), stock, 1, 0)
	for name, cmd := range map[string][]any{
		"no command":                  {},
		"no argument":                 {"PING"},
		"no key":                      {"PUBLISH", "news", "x"},
		"key is no text":              {"GET", 42},
		"key is not the first":        {"OBJECT", "ENCODING", stock},
		"operation before the key":    {"BITOP", "AND", "{sku:42}:a", "{sku:42}:b"},
		"number of keys before":       {"EVAL", "return redis.call('SET', KEYS[1], 2)", 1, stock},
		"keys under two tags":         {"MSET", stock, 2, "{sku:43}:stock", 2},
		"second key without the tag":  {"RENAME", stock, "elsewhere"},
		"empty key":                   {"SET", "", 1},
		"brace outside a tag":         {"SET", "a}b", 1},
		"empty tag":                   {"SET", "{}a", 1},
		"unknown command":             {"SETT", stock, 2},
		"too few arguments":           {"SET", stock},
		"command forbidden in script": {"SUBSCRIBE", "news"},
	} {
		before := plain.Get(t.Context(), stock).Val()
		if err := f.Do(first, cmd...).Err(); err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
		if after := plain.Get(t.Context(), stock).Val(); after != before {
			t.Errorf("%s: got %q in the key, want it as before: %q", name, after, before)
		}
	}
	if err := f.Eval(first, "return 1", nil).Err(); err == nil {
		t.Error("Eval without keys: got nil, want an error")
	}
	if err := f.Eval(first, "return 1", []string{stock, "{sku:43}:stock"}).Err(); err == nil {
		t.Error("Eval with two tags: got nil, want an error")
	}
}

// A fenced command answers what the plain one would, in RESP2.
func TestFenced_AnswersAsThePlainCommand(t *testing.T) {
	f, speaks3 := fenced(t)
	plain := clientWith(t, &redis.Options{Addr: speaks3.Options().Addr, Protocol: 2})
	first, _, _ := succession(t)
	ctx := t.Context()
	plain.Set(ctx, "{k}s", "text", 0)
	plain.Set(ctx, "{k}i", 41, 0)
	plain.HSet(ctx, "{k}h", "field", "value")
	plain.ZAdd(ctx, "{k}z", redis.Z{Score: 1.5, Member: "m"})
	plain.SAdd(ctx, "{k}set", "one")
	plain.RPush(ctx, "{k}l", "a", "b")
	for _, cmd := range [][]any{
		{"GET", "{k}s"},
		{"GET", []byte("{k}s")},
		{"GET", "{k}none"},
		{"STRLEN", "{k}s"},
		{"MGET", "{k}s", "{k}none", "{k}i"},
		{"HGETALL", "{k}h"},
		{"HGET", "{k}h", "none"},
		{"ZSCORE", "{k}z", "m"},
		{"ZRANGE", "{k}z", 0, -1, "WITHSCORES"},
		{"SMEMBERS", "{k}set"},
		{"LRANGE", "{k}l", 0, -1},
		{"LRANGE", "{k}none", 0, -1},
		{"SET", "{k}s", "text"},
		{"SET", "{k}s", "other", "NX"},
		{"TYPE", "{k}l"},
		{"LPUSH", "{k}s", "x"},
		{"INCR", "{k}s"},
		{"EXPIRE", "{k}none", 1},
	} {
		want, wantErr := plain.Do(ctx, cmd...).Result()
		got, gotErr := f.Do(first, cmd...).Result()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: reply (-plain +fenced):\n%s", cmd, diff)
		}
		if text(wantErr) != text(gotErr) {
			t.Errorf("%v: got error %q, want that of the plain command: %q", cmd, text(gotErr), text(wantErr))
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFenced_EvalSeesItsOwnArguments(t *testing.T) {
	f, plain := fenced(t)
	first, _, third := succession(t)
	keys := []string{stock, "{sku:42}:orders"}
	const script = "redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], ARGV[2]); return {#KEYS, #ARGV, ARGV[1]}"
	for _, s := range []string{script, "#!lua\n" + script} {
		got, err := f.Eval(first, s, keys, "a", 7).Result()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{int64(2), int64(2), "a"}, got); diff != "" {
			t.Errorf("what the script saw (-want +got):\n%s", diff)
		}
	}
	if got := plain.Get(t.Context(), keys[1]).Val(); got != "7" {
		t.Errorf("second key: got %q, want 7", got)
	}
	if err := f.Eval(third, "return 1", keys[:1]).Err(); err != nil {
		t.Fatal(err)
	}
	if err := f.Eval(first, script, keys, "late", 8).Err(); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("late script: got %v, want %v", err, fencing.ErrStale)
	}
	if got := plain.Get(t.Context(), keys[1]).Val(); got != "7" {
		t.Errorf("second key after the late script: got %q, want 7", got)
	}
}
