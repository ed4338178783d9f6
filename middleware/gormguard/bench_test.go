package gormguard_test

import (
	"testing"

	"gorm.io/gorm"
)

// What the fence costs a statement: an update without it, with it, and with it
// inside a transaction that is checked once.
func BenchmarkPlugin(b *testing.B) {
	for _, d := range databases() {
		if d.name == "PostgresRepeatableRead" {
			continue
		}
		b.Run(d.name, func(b *testing.B) {
			w := world{d, d.dsn(b)}
			w.prepare(b)
			update := func(db *gorm.DB) func(b *testing.B) {
				return func(b *testing.B) {
					for b.Loop() {
						must(b, "update", setUnits(db, "a", 1))
					}
				}
			}
			read := func(db *gorm.DB) func(b *testing.B) {
				return func(b *testing.B) {
					for b.Loop() {
						_, err := units(db, "a")
						must(b, "read", err)
					}
				}
			}
			plain, fenced := w.unfenced(b), w.fenced(b).WithContext(held(b.Context(), "a", 1))
			b.Run("Update/Plain", update(plain))
			b.Run("Update/Fenced", update(fenced))
			b.Run("Read/Plain", read(plain))
			b.Run("Read/Fenced", read(fenced))
		})
	}
}
