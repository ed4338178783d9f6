package fencing

import (
	"fmt"
)

// Token orders the holders of one resource. Compare tokens; read nothing else
// into them. The zero Token belongs to nobody and is smaller than every token
// of a holder.
//
// Its 63 bits are, from the top: generation (6), sequence (48), hand-over (8),
// fallback (1). The sign bit stays clear, so that a SQL BIGINT orders tokens as
// Go does.
type Token uint64

const (
	fallbackBits   = 1
	handoverBits   = 8
	sequenceBits   = 48
	generationBits = 6

	handoverShift   = fallbackBits
	sequenceShift   = handoverShift + handoverBits
	generationShift = sequenceShift + sequenceBits

	maxHandover   = 1<<handoverBits - 1
	maxSequence   = 1<<sequenceBits - 1
	maxGeneration = 1<<generationBits - 1
)

// NewToken packs what a store knows. It fails when a part does not fit:
// 6 bits of generation, 48 of sequence. It never wraps: a wrapped token would
// let an old holder pass for a new one.
func NewToken(generation uint8, sequence uint64) (Token, error) {
	if generation > maxGeneration {
		return 0, fmt.Errorf("fencing: generation %d does not fit into %d bits (at most %d)", generation, generationBits, maxGeneration)
	}
	if sequence == 0 || sequence > maxSequence {
		return 0, fmt.Errorf("fencing: sequence %d is outside 1..%d", sequence, uint64(maxSequence))
	}
	return Token(generation)<<generationShift | Token(sequence)<<sequenceShift, nil
}

// Next is the token of the following holder inside the same sequence number (a
// hand-over). It fails on overflow (255 hand-overs).
func (t Token) Next() (Token, error) {
	if t>>handoverShift&maxHandover == maxHandover {
		return 0, fmt.Errorf("fencing: token %d was handed over %d times already", t, maxHandover)
	}
	return t + 1<<handoverShift, nil
}
