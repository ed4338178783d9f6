package main

import "time"

// The processes talk in lines of JSON: instructions go to a process's stdin,
// reports come from its stdout.
const (
	roleVariable = "PAWL_FLASHSALE_ROLE"
	roleShop     = "shop"
)

type (
	verb string
	fact string
)

const (
	open  verb = "open"  // get ready for a sale
	serve verb = "serve" // let buyers come in
	goOn  verb = "go on" // ends the halt of a buyer
	leave verb = "leave" // end in order; a stdin that ends without it means that the parent has died

	ready      fact = "ready"
	halted     fact = "halted"     // a buyer has read and waits to be told to go on
	sold       fact = "sold"       // a buyer has a unit
	soldOut    fact = "sold out"   // a buyer was told so
	refused    fact = "refused"    // the fence refused an access of a buyer, who comes again
	unanswered fact = "unanswered" // the lock store did not answer a buyer in time, who comes again
	failed     fact = "failed"     // the process cannot go on
	ended      fact = "ended"      // the process is gone; made by the parent
)

type instruction struct {
	Do     verb   `json:"do"`
	Setup  *setup `json:"setup,omitempty"` // of open
	Buyers span   `json:"buyers,omitzero"` // of serve
	Halt   bool   `json:"halt,omitempty"`  // of serve: between read and write
}

// span is the buyers From to To-1.
type span struct{ From, To int }

func (s span) count() int { return s.To - s.From }

type setup struct {
	Sale       string
	Protection protection
	DB, Lock   string
	Process    int // from 1
	Processes  int
	TempDir    string // to remove when the parent has died; may be empty
}

type report struct {
	Is      fact          `json:"is"`
	Process int           `json:"-"` // filled in by the parent, from 0
	Buyer   int           `json:"buyer,omitempty"`
	Unit    int           `json:"unit,omitempty"`   // sold; when halted, the units left
	Waited  time.Duration `json:"waited,omitempty"` // for the lock
	Text    string        `json:"text,omitempty"`   // why it failed or ended
}
