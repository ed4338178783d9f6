package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// tills is how many buyers one process serves at the same time.
const tills = 4

// shop is one process that sells, told what to do by its parent.
type shop struct {
	goOn   chan struct{} // one value for each halted buyer to go on
	buyers sync.WaitGroup
	tills  chan struct{} // as many buyers as it has room for are served at the same time

	mu  sync.Mutex // orders reports
	out *json.Encoder
}

// work is the body of a process that sells: it returns its exit status.
func work(in io.Reader, out io.Writer) int {
	// The parent ends this process, through its stdin. When the parent dies, the
	// system may send SIGHUP, and what is written next meets a broken pipe: neither
	// may end it before it has cleaned up.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	s := &shop{goOn: make(chan struct{}), tills: make(chan struct{}, tills), out: json.NewEncoder(out)}
	told := make(chan instruction, 16) // more than are ever under way: listen must not wait
	go s.listen(in, told)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := s.obey(ctx, told); err != nil {
		s.report(report{Is: failed, Text: err.Error()})
		return exitUnexpected
	}
	return exitAsExpected
}

// listen passes instructions on. Whatever the process is doing, it ends when the
// parent has died.
func (s *shop) listen(in io.Reader, told chan<- instruction) {
	lines := json.NewDecoder(in)
	tempDir := ""
	for {
		var i instruction
		if err := lines.Decode(&i); err != nil {
			cleanUp(tempDir)
			os.Exit(exitUnexpected)
		}
		if i.Setup != nil {
			tempDir = i.Setup.TempDir
		}
		told <- i
	}
}

// cleanUp removes what the dead parent cannot. Buyers of this and of the other
// processes may still be making files there.
func cleanUp(tempDir string) {
	for range 10 {
		if tempDir == "" || os.RemoveAll(tempDir) == nil {
			return
		}
	}
}

func (s *shop) obey(ctx context.Context, told <-chan instruction) (err error) {
	var c *counter
	defer func() { c.close(ctx) }()
	for i := range told {
		switch i.Do {
		case open:
			s.buyers.Wait()
			c.close(ctx)
			if c, err = openCounter(ctx, *i.Setup); err != nil {
				return err
			}
			s.report(report{Is: ready})
		case serve:
			for buyer := i.Buyers.From; buyer < i.Buyers.To; buyer++ {
				s.buyers.Go(func() { s.serve(ctx, c, buyer, i.Halt) })
			}
		case goOn:
			s.goOn <- struct{}{}
		case leave:
			s.buyers.Wait()
			return nil
		}
	}
	return nil
}

// serve lets a buyer try until it has a unit or there is none.
func (s *shop) serve(ctx context.Context, c *counter, buyer int, halt bool) {
	s.tills <- struct{}{}
	defer func() { <-s.tills }()
	for {
		unit, waited, err := c.buy(ctx, buyer, func(left int) {
			if !halt {
				time.Sleep(thinkTime) // what a payment provider takes
				return
			}
			halt = false
			s.report(report{Is: halted, Buyer: buyer, Unit: left})
			<-s.goOn
		})
		switch {
		case unit > 0: // committed; that the lease was lost later or before (guard.ErrLost) does not undo it
			s.report(report{Is: sold, Buyer: buyer, Unit: unit, Waited: waited})
			return
		case errors.Is(err, errSoldOut):
			s.report(report{Is: soldOut, Buyer: buyer, Waited: waited})
			return
		case errors.Is(err, fencing.ErrStale): // nothing was written
			s.report(report{Is: refused, Buyer: buyer, Waited: waited})
		case errors.Is(err, guard.ErrUnavailable): // the purchase was not begun; a busy machine may have been too slow
			s.report(report{Is: unanswered, Buyer: buyer, Text: fmt.Sprintf("buyer %d: %v", buyer, err)})
			time.Sleep(thinkTime)
		case errors.Is(err, guard.ErrBusy), errors.Is(err, guard.ErrLost) && errors.Is(err, errNotWritten):
		default:
			s.report(report{Is: failed, Buyer: buyer, Text: fmt.Sprintf("buyer %d: %v", buyer, err)})
			return
		}
	}
}

func (s *shop) report(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(r) // a parent that does not read any more is dead, and listen knows
}
