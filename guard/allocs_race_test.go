//go:build race

package guard_test

// withLockAllocs counts two more: the race detector keeps the compiler from putting
// them on the stack.
const withLockAllocs = 10
