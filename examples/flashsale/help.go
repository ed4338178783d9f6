package main

import (
	_ "embed"
	"fmt"
	"time"
)

//go:embed help.txt
var helpText string

// help is the text of -h, at most 80 columns wide.
func help() string {
	return fmt.Sprintf(helpText, thinkTime.Milliseconds(), leaseTTL/time.Second, waitOver.Milliseconds(), lockInDatabase,
		maxBuyers, defaultBuyers, defaultUnits, minProcesses, maxProcesses, defaultProcesses)
}
