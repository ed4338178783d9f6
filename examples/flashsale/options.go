package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// options are the flags.
type options struct {
	lock, db                 string
	buyers, units, processes int
}

const (
	lockInDatabase = "database"

	defaultBuyers    = 100
	defaultUnits     = 60
	defaultProcesses = 4

	maxBuyers    = 10_000
	minProcesses = 2
	maxProcesses = 16
)

// parse reads the flags and refuses what could not show anything, before
// anything has been started.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("flashsale", flag.ContinueOnError)
	f.SetOutput(io.Discard) // run prints help and errors
	f.StringVar(&o.lock, "lock", lockInDatabase, "")
	f.StringVar(&o.db, "db", "", "")
	f.IntVar(&o.buyers, "buyers", defaultBuyers, "")
	f.IntVar(&o.units, "units", defaultUnits, "")
	f.IntVar(&o.processes, "processes", defaultProcesses, "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag: write flags as -name value", f.Arg(0))
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.processes < minProcesses || o.processes > maxProcesses:
		return fmt.Errorf("-processes %d: use %d to %d, since one process alone shows nothing", o.processes, minProcesses, maxProcesses)
	case o.units < 1:
		return fmt.Errorf("-units %d: use 1 or more", o.units)
	case o.buyers > maxBuyers:
		return fmt.Errorf("-buyers %d: use at most %d", o.buyers, maxBuyers)
	case o.buyers <= o.units:
		return fmt.Errorf("-buyers %d with -units %d: only with more buyers than units is there anything to oversell; raise -buyers or lower -units", o.buyers, o.units)
	case o.buyers < o.processes:
		return fmt.Errorf("-buyers %d with -processes %d: each process needs a buyer; raise -buyers or lower -processes", o.buyers, o.processes)
	}
	_, errDB := dialector(o.db)
	if errDB != nil {
		errDB = fmt.Errorf("-db: %w", errDB)
	}
	errLock := checkLock(o.lock)
	if errLock != nil {
		errLock = fmt.Errorf("-lock: %w", errLock)
	}
	return errors.Join(errDB, errLock)
}
