// Package faults has only tests: guard on real servers, while processes freeze,
// links break and servers die.
//
// Each test shows the harm that its fault does without the protection, and that
// it does none with it. A harm that does not show fails the test as well: it
// would prove nothing. `make test` runs a few tries of each, `make soak` the full
// counts; the tries of a test run side by side, each on a key of its own.
//
//	stale_test.go       a holder that was frozen past its lease writes what it read before
//	trade_test.go       the same by chance, for a while
//	outage_test.go      the store is cut off, black-holed, paused, killed
//	lostreply_test.go   the reply of an acquire, a renewal, a release is lost
//	halfopen_test.go    calls whose context ends on a link that swallows everything
//	unwind_test.go      cancelled, panicking and exiting callers, at every step
//	renewal_test.go     work longer than its lease, work whose lease is lost
//	freeze_test.go      a process frozen between a release and the next local holder
//	exclusion_test.go   two guards, in one process and in two
//	fairness_test.go    a crowd on one key, and another process that wants it too
//	history_test.go     random faults, checked by package history
//	amnesia_test.go     a server that forgets everything
//
// A process of a test is this test binary, started again; see child_test.go.
package faults
