package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// sale holds key, reads how many units are left, thinks, and writes one less. A
// nil error means that the unit is sold. It does not stop when the lease is lost:
// code that is inside a statement, or looks at its context too seldom, does not
// either, and it is the fence that is tested.
type sale func(ctx context.Context, key string, think func(saw int64)) error

// Ways to protect the stock.
const (
	unfenced     = "Unfenced"
	checkOnWrite = "CheckOnWrite" // the token is compared, but not before the write
	statements   = "Statements"   // the plugin, each access by itself
	transaction  = "Transaction"  // the plugin, both in one transaction
	withLock     = "WithLock"     // of gormguard
)

// errLater is the refusal of checkOnWrite.
var errLater = errors.New("a later token has written")

const itemsTable = `CREATE TABLE items (name VARCHAR(200) PRIMARY KEY, stock BIGINT NOT NULL, token BIGINT NOT NULL)`

// openShop fills s.sales.
func (s *stage) openShop() (closeShop func(), err error) {
	if addr, ok := strings.CutPrefix(s.Stock, "redis://"); ok {
		return s.openRedisShop(addr)
	}
	plain, err := connectDB(s.Stock)
	if err != nil {
		return nil, err
	}
	fenced, err := connectDB(s.Stock)
	if err != nil {
		return nil, err
	}
	if err := fenced.Use(gormguard.Plugin()); err != nil {
		return nil, err
	}
	s.sales[unfenced] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return sellSQL(plain.WithContext(ctx), key, think, 0)
	})
	s.sales[checkOnWrite] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return sellSQL(plain.WithContext(ctx), key, think, tokenOf(ctx))
	})
	s.sales[statements] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return sellSQL(fenced.WithContext(ctx), key, think, 0)
	})
	s.sales[transaction] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return fenced.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return sellSQL(tx, key, think, 0) })
	})
	s.sales[withLock] = func(ctx context.Context, key string, think func(int64)) error {
		return gormguard.WithLock(ctx, s.guard, plain, key, func(_ context.Context, tx *gorm.DB) error {
			return sellSQL(tx, key, think, 0)
		})
	}
	return func() { closeDB(plain); closeDB(fenced) }, nil
}

// locked runs a sale under the lock of its key. That the lease was lost is not
// its outcome: what the stock says of it is.
func (s *stage) locked(sell sale) sale {
	return func(ctx context.Context, key string, think func(int64)) error {
		sold := errors.New("it did not run")
		err := s.guard.WithLock(ctx, key, func(ctx context.Context) error {
			sold = sell(context.WithoutCancel(ctx), key, think)
			return nil
		})
		if sold != nil {
			return errors.Join(sold, err)
		}
		return nil
	}
}

func tokenOf(ctx context.Context) fencing.Token { return fencing.Grants(ctx)[0].Token }

// sellSQL compares the token in the statement that writes, unless it is zero.
func sellSQL(db *gorm.DB, key string, think func(int64), token fencing.Token) error {
	var saw int64
	if err := db.Raw("SELECT stock FROM items WHERE name = ?", key).Scan(&saw).Error; err != nil {
		return err
	}
	think(saw)
	if token == 0 {
		return db.Exec("UPDATE items SET stock = ? WHERE name = ?", saw-1, key).Error
	}
	r := db.Exec("UPDATE items SET stock = ?, token = ? WHERE name = ? AND token <= ?", saw-1, int64(token), key, int64(token))
	if r.Error == nil && r.RowsAffected == 0 {
		return errLater
	}
	return r.Error
}

const setUnlessLater = `if (redis.call('GET', KEYS[2]) or '') > ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], ARGV[2]); return 1`

func (s *stage) openRedisShop(addr string) (closeShop func(), err error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	fence := redisstore.Fence(client)
	plain := func(ctx context.Context, cmd ...any) *redis.Cmd { return client.Do(ctx, cmd...) }
	s.sales[unfenced] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return sellRedis(ctx, key, think, plain, plain)
	})
	s.sales[checkOnWrite] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return sellRedis(ctx, key, think, plain, func(ctx context.Context, cmd ...any) *redis.Cmd {
			done := client.Eval(ctx, setUnlessLater, []string{redisKey(key), redisKey(key) + ":token"}, cmd[2], fmt.Sprintf("%020d", tokenOf(ctx)))
			if done.Err() == nil && done.Val() == int64(0) {
				done.SetErr(errLater)
			}
			return done
		})
	})
	s.sales[statements] = s.locked(func(ctx context.Context, key string, think func(int64)) error {
		return sellRedis(ctx, key, think, fence.Do, fence.Do)
	})
	return func() { _ = client.Close() }, nil
}

// redisKey is where the stock of key is.
func redisKey(key string) string { return "{" + key + "}:stock" }

type doRedis func(ctx context.Context, cmd ...any) *redis.Cmd

func sellRedis(ctx context.Context, key string, think func(int64), read, write doRedis) error {
	saw, err := read(ctx, "GET", redisKey(key)).Int64()
	if err != nil {
		return err
	}
	think(saw)
	return write(ctx, "SET", redisKey(key), saw-1).Err()
}
