//go:build !linux

package gormstore

// networkFS knows nothing outside Linux.
func networkFS(string) (string, error) { return "", nil }
