package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/backends/redisstore"
)

// openLocks opens the lock store that -lock names. close ends its connections,
// and leaves those of db alone.
func openLocks(address string, db *gorm.DB) (locks driver.Backend, closing func(), err error) {
	switch scheme, _, _ := strings.Cut(address, "://"); scheme {
	case lockInDatabase:
		locks, err = gormstore.New(db)
		return locks, func() {}, err
	case "redis", "rediss":
		o, err := redisOptions(address)
		if err != nil {
			return nil, nil, err
		}
		client := redis.NewClient(o)
		locks, err = redisstore.New(client)
		return locks, func() { _ = client.Close() }, err
	}
	return nil, nil, checkLock(address)
}

// checkLock reads -lock without connecting.
func checkLock(address string) error {
	switch scheme, _, _ := strings.Cut(address, "://"); {
	case address == lockInDatabase:
		return nil
	case scheme == "redis" || scheme == "rediss":
		_, err := redisOptions(address)
		return err
	case strings.Contains(address, "://"):
		return fmt.Errorf("unknown kind %q: use %q or redis://host:port", scheme+"://", lockInDatabase)
	}
	return fmt.Errorf("%q is no URL: use %q or redis://host:port", address, lockInDatabase)
}

func redisOptions(address string) (*redis.Options, error) {
	if _, err := server(address); err != nil {
		return nil, err
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("this is no Redis URL: write redis://user:password@host:port/number")
	}
	return o, nil
}
