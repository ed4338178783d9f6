// Package gormstore keeps locks in a database that is reached through GORM:
// PostgreSQL, MySQL, MariaDB or SQLite.
//
// A key is one row. Acquire and Release are one statement each, a transaction
// of its own on a connection of the pool: no lock waits inside a transaction,
// none joins the caller's, none keeps a connection. Renewals made at the same
// time share a statement. Time is the database's clock, read in the statement
// that uses it, as UTC whatever zone the session has.
//
// Create the tables with [Migrate], or give [Schema] to a migration tool. Rows of
// keys that are not used any more are deleted by [Store.Sweep], for a nightly job.
//
// # What it is worth
//
// A grant is as good as one primary with synchronous commit: a failover to a
// standby that lags, or a clock that is set forward, can grant a key twice.
// [Store.Check] names the settings that do harm. An error other than
// [driver.ErrBusy] and [driver.ErrLost] leaves the outcome unknown; a Release by
// owner repairs it.
//
// A pool that is used up holds up renewals as well: give New a *gorm.DB with a
// pool of its own where requests may take every connection.
//
// # PostgreSQL
//
// Each statement commits synchronously, also where the session says otherwise.
// Isolation levels above READ COMMITTED work and cost retries. Poolers in
// transaction mode work, given a driver that is set up for them.
//
// # MySQL and MariaDB
//
// Say interpolateParams=true in the DSN: without it the driver prepares each
// statement first, a second round trip. Sessions must have autocommit on, which
// is the default.
//
// # SQLite
//
// The processes must run on one host, on a local file system. A good DSN for
// github.com/glebarez/sqlite is
//
//	file:app.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_txlock=immediate
//
// WAL, because otherwise readers hold up every writer; busy_timeout and
// _txlock=immediate for the application's own transactions, which otherwise
// fail at once when they meet a writer after a read; synchronous(FULL), because
// with NORMAL a power cut forgets what was committed last. The version of SQLite
// must be 3.35 or later.
package gormstore
