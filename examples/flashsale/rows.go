package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// result is a row of the table.
type result struct {
	options
	row protection
	tally
	audit
}

// sellAll runs the sale once for each row. Whatever happens, no process and no
// temporary file is left.
func sellAll(ctx context.Context, o options, screen *screen) (caption string, results []result, err error) {
	defer screen.end()
	s, err := build(ctx, o, screen)
	if s != nil {
		defer func() { err = errors.Join(err, s.tearDown(ctx)) }()
	}
	if err != nil {
		return "", nil, err
	}
	for _, row := range protections() {
		r, err := s.sellOnce(ctx, row)
		if err != nil {
			return "", nil, err
		}
		results = append(results, r)
	}
	return s.caption, results, s.crew.dismiss()
}

// sellOnce is one row: a sale of its own, and what the database says after it.
func (s *stage) sellOnce(ctx context.Context, row protection) (result, error) {
	id := strings.ToLower(rand.Text()[:10]) // two programs may use one database
	s.sales = append(s.sales, id)
	if err := prepare(ctx, s.db, id, s.units); err != nil {
		return result{}, err
	}
	sale := &sale{
		options: s.options, row: row, crew: s.crew, screen: s.screen,
		setup: setup{Sale: id, Protection: row, DB: s.options.db, Lock: s.lock, Processes: s.processes, TempDir: s.tempDir},
	}
	seen, err := sale.run(ctx)
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", row.label(), err)
	}
	found, err := inspect(ctx, s.db, id)
	r := result{options: s.options, row: row, tally: seen, audit: found}
	s.screen.note("%s: %d orders for %d units in %s", row.label(), r.Orders, s.units, seconds(r.lastSale.Sub(r.began)))
	return r, err
}
