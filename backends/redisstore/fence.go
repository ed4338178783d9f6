package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/fencing"
)

var (
	//go:embed fence.lua
	fenceSource string
	//go:embed do.lua
	doSource string
)

// Fenced runs commands that are refused when a later holder has been here. A ctx
// without grants is an error, never unfenced.
//
// For each grant that ctx carries (see [fencing.NewContext]) a register beside
// the data is compared and raised in the same script as the command. A smaller
// token than the register's is [fencing.ErrStale]; one of another origin, unless
// its generation is higher, is [fencing.ErrForeign]; either way the command has
// not run. Reads must be fenced too: a late write is refused only if the later
// holder has raised the register before it, at the latest by its own first read.
//
// There is one register for each resource and hash tag: "pawl:fence:{tag}:resource",
// without an expiry, under the hash tag of the command's keys or, if they have
// none, the whole key. So keep what one lock protects under one hash tag, like
// "{sku:42}:stock" and "{sku:42}:orders": then the first access to any of them
// shuts out earlier holders from all, and one script may use them together.
//
// The register is as durable as Redis is: a failover or a restart that loses
// writes may lose it together with the data, or alone. A Fenced is safe for
// concurrent use. The client sends a command again whose reply was lost, as it
// does with every command: write values rather than increments, or turn its
// retries off.
type Fenced struct {
	client redis.UniversalClient
	do     *redis.Script
}

// Fence returns a Fenced on client, the one that the data is reached by.
func Fence(client redis.UniversalClient) *Fenced {
	return &Fenced{client: client, do: redis.NewScript(fenceSource + doSource)}
}

var (
	errNoClient = errors.New("redisstore: Fence: the client is nil")
	errNoGrants = errors.New("redisstore: a fenced command needs a ctx that carries a grant: that of the function run under the lock")
	errNoKey    = errors.New("redisstore: the first argument of a fenced command must be a key, as string or []byte; use Eval for commands that begin otherwise")
	errNoTag    = errors.New("redisstore: a fenced key must not be empty, nor hold '}' outside a hash tag")
	errTags     = errors.New("redisstore: the keys of one fenced command must share a hash tag")
)

// Do runs a command, such as Do(ctx, "SET", "{sku:42}:stock", 9). Its first
// argument must be its first key, and all its keys must share a hash tag; the
// server's own COMMAND GETKEYS checks this in the same script, and a command that
// does not fit is refused. Replies are those of the plain command in RESP2: HGETALL
// is a list, a score is text. Integers beyond 53 bits lose their last digits on
// their way through Lua. Commands that block return at once.
func (f *Fenced) Do(ctx context.Context, cmd ...any) *redis.Cmd {
	if len(cmd) < 2 {
		return failed(ctx, errNoKey, cmd...)
	}
	var key string
	switch k := cmd[1].(type) {
	case string:
		key = k
	case []byte:
		key = string(k)
	default:
		return failed(ctx, errNoKey, cmd...)
	}
	return f.run(ctx, f.do, []string{key}, cmd)
}

// Eval runs a script, which sees its own keys and args in KEYS and ARGV. There
// must be a key, and all keys must share a hash tag.
func (f *Fenced) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	shebang := ""
	if strings.HasPrefix(script, "#!") { // it must stay the first line
		shebang, script, _ = strings.Cut(script, "\n")
		shebang += "\n"
	}
	return f.run(ctx, redis.NewScript(shebang+fenceSource+script), keys, args)
}

func (f *Fenced) run(ctx context.Context, script *redis.Script, keys []string, args []any) *redis.Cmd {
	if missing(f.client) {
		return failed(ctx, errNoClient, args...)
	}
	grants := fencing.Grants(ctx)
	if len(grants) == 0 {
		return failed(ctx, errNoGrants, args...)
	}
	tag, err := commonTag(keys)
	if err != nil {
		return failed(ctx, err, args...)
	}
	allKeys := append(make([]string, 0, len(keys)+len(grants)), keys...)
	allArgs := append(make([]any, 0, len(args)+3*len(grants)+1), args...)
	for _, g := range grants {
		allKeys = append(allKeys, "pawl:fence:{"+tag+"}:"+tagged(g.Resource))
		allArgs = append(allArgs, hex(g.Token), hex(firstOf(g.Token)), g.Origin)
	}
	done := script.Run(ctx, f.client, allKeys, append(allArgs, len(grants))...)
	done.SetErr(judge(done.Err()))
	return done
}

// judge turns what the scripts say into the errors of package fencing.
func judge(err error) error {
	switch {
	case redis.HasErrorPrefix(err, "PAWLSTALE"):
		return fmt.Errorf("redisstore: %w", fencing.ErrStale)
	case redis.HasErrorPrefix(err, "PAWLFOREIGN"):
		return fmt.Errorf("redisstore: %w", fencing.ErrForeign)
	case redis.HasErrorPrefix(err, "PAWLKEYS"):
		return fmt.Errorf("redisstore: command refused by the fence: %w", err)
	}
	return err
}

func failed(ctx context.Context, err error, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetErr(err)
	return cmd
}

// commonTag is the hash tag of all keys, in a form that is a hash tag again.
func commonTag(keys []string) (string, error) {
	if len(keys) == 0 {
		return "", errNoKey
	}
	for _, key := range keys {
		if hashTag(key) != hashTag(keys[0]) {
			return "", errTags
		}
	}
	tag := hashTag(keys[0])
	if tag == "" || strings.Contains(tag, "}") {
		return "", errNoTag
	}
	return tag, nil
}

// hashTag is the part of key that a cluster hashes.
func hashTag(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return key
	}
	tag, _, found := strings.Cut(rest, "}")
	if !found || tag == "" {
		return key
	}
	return tag
}

// hex is t in a width that makes texts of tokens comparable.
func hex(t fencing.Token) string { return fmt.Sprintf("%016x", uint64(t)) }

// firstOf is the smallest token of t's generation: smaller ones are of earlier
// generations.
func firstOf(t fencing.Token) fencing.Token {
	first := fencing.Token(0)
	for generation := uint8(0); ; generation++ {
		next, err := fencing.NewToken(generation, 1)
		if err != nil || next > t {
			return first
		}
		first = next
	}
}
