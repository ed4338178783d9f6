package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	tableWidth = 98

	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

// conclude is the text that the program ends with, and its exit status.
func conclude(caption string, results []result, took time.Duration, colored bool) (text string, code int) {
	paint := func(_, text string) string { return text }
	if colored {
		paint = func(color, text string) string { return color + text + plain }
	}
	var b strings.Builder
	b.WriteString("\n" + caption + "\n\n")
	table(&b, results, paint)
	b.WriteByte('\n')
	for _, r := range results {
		if !r.judge().expected {
			b.WriteString(paint(red, "FAILED: row "+r.row.label()+" is not what should have been shown.") + "\n")
			code = exitUnexpected
		}
	}
	if code == exitAsExpected {
		b.WriteString("As expected: only the fenced sale is exact. It took " + seconds(took) + ".\n")
	}
	return b.String(), code
}

func table(b *strings.Builder, results []result, paint func(color, text string) string) {
	rule := strings.Repeat("─", tableWidth) + "\n"
	b.WriteString(paint(bold, strings.TrimRight(fmt.Sprintf(columns, "", "", "", "", "double", "stale", "", ""), " ")) + "\n")
	b.WriteString(paint(bold, fmt.Sprintf(columns, "protection", "units", "sold", "oversold", "sold", "refused", "waits", "orders/s")) + "\n")
	b.WriteString(rule)
	for _, r := range results {
		v := r.judge()
		color := red
		if v.expected && r.row == lockAndFence {
			color = green
		}
		b.WriteString(r.cells() + "  " + paint(color, v.text) + "\n")
	}
	b.WriteString(rule)
	for _, r := range results {
		letter := r.row.label()[:len("(a)")]
		b.WriteString(wrap(letter+" "+r.story(), len(letter)+1) + "\n")
	}
}

// columns is how cells stand.
const columns = "%-18s %6s %6s %9s %8s %9s %7s %9s"

// cells of a row. What a row cannot have is a dash.
func (r result) cells() string {
	stale, waits := "-", "-"
	if r.row != noLock {
		waits = strconv.Itoa(r.waits)
	}
	if r.row == lockAndFence {
		stale = strconv.Itoa(r.refused)
	}
	return fmt.Sprintf(columns, r.row.label(), strconv.Itoa(r.units), strconv.Itoa(r.Orders), strconv.Itoa(r.oversold()),
		strconv.Itoa(r.DoubleSold), stale, waits, fmt.Sprintf("%.0f", r.rate()))
}

// wrap breaks text into lines of the table's width and indents all but the first.
func wrap(text string, indent int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
		case column+1+len(word) > tableWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
