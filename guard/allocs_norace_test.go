//go:build !race

package guard_test

const withLockAllocs = 8
