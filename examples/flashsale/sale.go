package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stallAfter is how long no buyer may be answered before the program gives up.
const stallAfter = 20 * time.Second

// sale conducts the crew through one row of the table.
type sale struct {
	options
	row    protection
	setup  setup
	crew   *crew
	screen *screen

	tally
	halts   map[int]report // the buyer that is halted, by process
	ready   int
	frozen  bool
	trouble string // the last of the lock store, for when nothing goes on
}

// run opens the shops, lets all buyers come, and returns when each was answered.
func (s *sale) run(ctx context.Context) (tally, error) {
	s.halts, s.began = map[int]report{}, time.Now()
	for i := range s.crew.members {
		own := s.setup
		own.Process = i + 1
		if err := s.crew.tell(i, instruction{Do: open, Setup: &own}); err != nil {
			return s.tally, err
		}
	}
	if err := s.until(ctx, func() bool { return s.ready == s.processes }); err != nil {
		return s.tally, err
	}
	s.began = time.Now()
	s.screen.note("%s: doors open: %d buyers, %d units, %d processes", s.row.label(), s.buyers, s.units, s.processes)
	conduct := s.withFreeze
	if s.row == noLock {
		conduct = s.withRush
	}
	err := conduct(ctx)
	return s.tally, err
}

// withRush lets the first buyer of every process read before any of them writes.
func (s *sale) withRush(ctx context.Context) error {
	for i := range s.crew.members {
		if err := s.crew.tell(i, instruction{Do: serve, Buyers: span{i, i + 1}, Halt: true}); err != nil {
			return err
		}
	}
	if err := s.until(ctx, func() bool { return len(s.halts) == s.processes }); err != nil {
		return err
	}
	for i := range s.crew.members {
		if err := s.crew.tell(i, instruction{Do: goOn}); err != nil {
			return err
		}
	}
	if err := s.admit(span{s.processes, s.buyers}, 0); err != nil {
		return err
	}
	return s.until(ctx, s.allAnswered)
}

// withFreeze sells a quarter of the units, freezes process 1 in the middle of a
// purchase, lets the others sell another quarter, wakes process 1, and sells the
// rest. What was sold meanwhile is what the late write puts back into stock.
func (s *sale) withFreeze(ctx context.Context) error {
	before := s.units / 4
	meanwhile := max(1, before)
	rest := before + 1 + meanwhile
	steps := []func() error{
		func() error { return s.admit(span{0, before}, 0) },
		func() error { return s.until(ctx, func() bool { return s.answered() == before }) },
		func() error { return s.freezeOne(ctx, before) },
		func() error { return s.admit(span{before + 1, rest}, 1) },
		func() error { return s.until(ctx, func() bool { return s.answered() == before+meanwhile }) },
		func() error { return s.wake(ctx) },
		func() error { return s.admit(span{rest, s.buyers}, 0) },
		func() error { return s.until(ctx, s.allAnswered) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// freezeOne stops process 1 while buyer holds the lock and has read the stock.
func (s *sale) freezeOne(ctx context.Context, buyer int) error {
	if err := s.crew.tell(0, instruction{Do: serve, Buyers: span{buyer, buyer + 1}, Halt: true}); err != nil {
		return err
	}
	if err := s.until(ctx, func() bool { return len(s.halts) == 1 }); err != nil {
		return err
	}
	if err := s.crew.freeze(0); err != nil {
		return fmt.Errorf("process 1 cannot be frozen: %w", err)
	}
	s.frozen, s.victim, s.frozenAt = true, s.halts[0], time.Now()
	s.screen.note("%s: %d sold; process 1 has read %q and is frozen, with the lock", s.row.label(), s.sold, fmt.Sprint(s.victim.Unit, " left"))
	return nil
}

// wake lets process 1 go on and waits for what becomes of its purchase.
func (s *sale) wake(ctx context.Context) error {
	s.screen.note("%s: %d sold; process 1 wakes up and writes %q", s.row.label(), s.sold, fmt.Sprint(s.victim.Unit-1, " left"))
	if err := s.crew.tell(0, instruction{Do: goOn}); err != nil {
		return err
	}
	if err := s.crew.thaw(0); err != nil {
		return fmt.Errorf("process 1 cannot be woken: %w", err)
	}
	return s.until(ctx, func() bool { return s.victimIs != "" })
}

// admit lets buyers come, a share to each process but the first few.
func (s *sale) admit(buyers span, but int) error {
	processes := s.processes - but
	for i := range processes {
		share := span{
			From: buyers.From + buyers.count()*i/processes,
			To:   buyers.From + buyers.count()*(i+1)/processes,
		}
		if share.count() == 0 {
			continue
		}
		if err := s.crew.tell(but+i, instruction{Do: serve, Buyers: share}); err != nil {
			return err
		}
	}
	return nil
}

func (s *sale) allAnswered() bool { return s.answered() == s.buyers }

// until takes reports until done.
func (s *sale) until(ctx context.Context, done func() bool) error {
	stall := time.NewTimer(stallAfter)
	defer stall.Stop()
	tick := time.NewTicker(s.screen.every)
	defer tick.Stop()
	for !done() {
		select {
		case r := <-s.crew.reports:
			if err := s.take(r); err != nil {
				return err
			}
			if r.Is != unanswered {
				stall.Reset(stallAfter)
			}
		case <-tick.C:
			s.screen.status(s.row, s.sold, s.units, time.Since(s.began), s.phase())
		case <-stall.C:
			return fmt.Errorf("nothing has happened for %v%s", stallAfter, s.trouble)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *sale) take(r report) error {
	switch r.Is {
	case ready:
		s.ready++
	case halted:
		s.halts[r.Process] = r
	case sold, soldOut, refused:
		if s.frozen && s.soldMeanwhile == 0 && r.Is == sold && r.Process != 0 {
			s.screen.note("%s: its lease ran out after %s; the others go on", s.row.label(), seconds(time.Since(s.frozenAt)))
		}
		s.count(r, s.frozen)
	case unanswered:
		if s.trouble == "" {
			s.screen.note("%s: process %d, %s: comes again", s.row.label(), r.Process+1, r.Text)
		}
		s.trouble = fmt.Sprintf("; the last news is of process %d, %s", r.Process+1, r.Text)
	case failed, ended:
		return fmt.Errorf("process %d: %s", r.Process+1, r.Text)
	default:
		return errors.New("a process sent what is no report")
	}
	return nil
}

func (s *sale) phase() string {
	switch {
	case !s.frozen:
		return "doors open"
	case s.soldMeanwhile == 0:
		return "holder frozen, lease runs out"
	case s.victimIs == "":
		return "holder frozen, others sell"
	}
	return "holder is awake again"
}
