package gormguard

import (
	"fmt"
	"time"

	"github.com/pawl-go/pawl/fencing"
)

// mode is how a register is read.
type mode uint8

const (
	plain  mode = iota // without a lock
	shared             // later raises wait until the transaction ends
)

// dialect is the SQL of the register. Every database decides by the values that
// a read returns: affected rows mean other things on each, and with each driver
// setting.
type dialect interface {
	// raise is an upsert that sets the register to g where judge says errBehind, and otherwise changes nothing.
	raise(g fencing.Grant) query
	// peeks says that raise locks the row also when it changes nothing: it must then be read first, or a hold would wait for
	// its own open transaction.
	peeks() bool
	// read selects resource, origin and token of the grants, locking in the order of resource. limit is for shared.
	read(grants []fencing.Grant, m mode, limit time.Duration) query
	// limits are statements that set the limits of a session's transactions and put back what was there before; empty: read does
	// it, or there are none.
	limits(limit time.Duration) (set, restore string)
	// immediate is a statement that must come before a shared read; empty: none.
	immediate() string
	// refused reports that err is the database's answer that a COMMIT rolled back.
	refused(err error) bool
	// undo is a statement that must follow a COMMIT that failed, or the session would stay in the transaction; empty: none.
	undo() string
	// row locks the register of key exclusively and makes it if it is missing.
	row(key string) query
	// commits says that defining statements commit the transaction they are in.
	commits() bool
	// syntax tells how to read SQL.
	syntax() syntax
	// ends reports that err, of a statement, has rolled back its transaction and left the session usable: what comes next
	// would commit by itself.
	ends(err error) bool
}

// query is a statement and its arguments.
type query struct {
	text string
	args []any
}

func dialectOf(name string) (dialect, error) {
	switch name {
	case "postgres":
		return postgres{}, nil
	case "mysql":
		return mysql{}, nil
	case "sqlite":
		return sqlite{}, nil
	}
	return nil, fmt.Errorf("gormguard: dialect %q is not supported (use postgres, mysql or sqlite)", name)
}
