// Package archtest holds what the repository promises about itself: who imports
// whom, what a program links, what is exported, and that code stays in small
// pieces. It has tests only.
//
// The golden files in testdata say what is exported and linked today. After a
// change that is meant, `make api` writes them again, and their diff is reviewed
// with it.
package archtest
