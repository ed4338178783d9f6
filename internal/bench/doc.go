// Package bench has only benchmarks, of guard on real servers: what hand-over
// gains, how many round trips a lock costs, and what ten thousand held locks
// cost. `make bench` runs them, `make test` holds them to their bounds. What guard
// itself costs, without a server, is measured in package guard, what each store
// costs in package drivertest.
package bench
