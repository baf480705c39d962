package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/execute/host"
	"dahl/naming"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/rundir/durable"
)

// planTable is the table of a run so far.
type planTable struct {
	*planOptions
	rows []planRow
	took time.Duration
}

// planUnits are the units of the table and how many of them one of the value is.
var planUnits = map[problem.Objective]struct {
	name string
	per  float64
}{problem.Time: {"ms", 1e3}, problem.Energy: {"mJ", 1e3}, problem.EDP: {"uJs", 1e6}}

// head is the first two lines.
func (t *planTable) head() string {
	head := "| machine | network | batch | objective | budget | plan | bound | gap, % | took, s | of processors | devices, cuts |"
	line := "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
	if t.hand > 0 {
		head += fmt.Sprintf(" best of %d by hand | plan against it, %% | its choice |", t.hand)
		line += " ---: | ---: | --- |"
	}
	if t.climb > 0 {
		head += fmt.Sprintf(" climb of %d | plan against it, %% | on |", t.climb)
		line += " ---: | ---: | --- |"
	}
	if t.defaults {
		head += " simulate's default | against the plan, % | beyond heft, s | of processors |"
		line += " ---: | ---: | ---: | ---: |"
	}
	return head + "\n" + line + "\n"
}

// format is a row as a line.
func (t *planTable) format(r planRow) string {
	unit, plan := planUnits[r.objective], r.plan.Chosen.Figures.Value
	known := func(value float64, format string, shown float64) string {
		if value == 0 || math.IsInf(value, 1) {
			return "none"
		}
		return fmt.Sprintf(format, shown)
	}
	number := func(value float64) string { return known(value, "%.5g", value*unit.per) }
	over := func(value, other float64) string { return known(other, "%.2f", 100*(value/other-1)) }
	text := fmt.Sprintf("| %s | %s | %d | %s, %s | %v | %s | %s | %s | %.1f | %.1f | %s |", r.machine, r.network, r.batch, r.objective, unit.name, r.budget,
		number(plan), number(r.plan.bound()), over(plan, r.plan.bound()), r.plan.took.wall.Seconds(), r.plan.took.processor.Seconds(), shortChoice(r.plan.Chosen.Choice))
	beside := func(f *found) {
		worse := ""
		if f.value < plan*(1-rounding) {
			worse = "**"
		}
		text += fmt.Sprintf(" %s | %s%s%s | %s |", number(f.value), worse, over(plan, f.value), worse, f)
	}
	if t.hand > 0 {
		beside(&r.hand)
	}
	if t.climb > 0 {
		beside(&r.climb)
	}
	if t.defaults {
		if r.byDefault == nil {
			return text + " | | | |"
		}
		text += fmt.Sprintf(" %s | %s | %.2f | %.2f |", number(r.byDefault.StepS), over(r.byDefault.StepS, plan), r.byDefault.beyond.wall.Seconds(), r.byDefault.beyond.processor.Seconds())
	}
	return text
}

// shortChoice names a choice in a cell: tiles of single layers are many numbers, and are counted.
func shortChoice(c space.Choice) string {
	if text := c.String(); len(text) <= longestChoice || c.Strategy != "" {
		return text
	}
	return fmt.Sprintf("%s, %s of tiles", cmp.Or(c.Devices, "all devices"), naming.Count(strings.Count(c.Tiles.String(), ":"), "number"))
}

// longestChoice is the length of a choice that is written as it is.
const longestChoice = 60

// rounding is a relative tolerance, for sums of floating-point numbers.
const rounding = 1e-9

// summary counts plans above others in their row, and defaults far above the plan.
func (t *planTable) summary() string {
	var byHand, byClimb, byDefault, times int
	for _, r := range t.rows {
		plan := r.plan.Chosen.Figures.Value
		if r.hand.value < plan*(1-rounding) {
			byHand++
		}
		if r.climb.value < plan*(1-rounding) {
			byClimb++
		}
		if r.byDefault != nil {
			times++
			if r.byDefault.StepS > farAbove*plan {
				byDefault++
			}
		}
	}
	text := fmt.Sprintf("\nOf %d plans %d are above the best choice by hand, and %d above the climb.", len(t.rows), byHand, byClimb)
	if t.defaults {
		text += fmt.Sprintf(" Of %d defaults of simulate %d are above %g times the plan.", times, byDefault, farAbove)
	}
	return text + "\n"
}

// farAbove is how far a default may be above the plan of a search.
const farAbove = 1.1

// save writes the file of --out.
func (t *planTable) save() error {
	if t.out == "" {
		return nil
	}
	return durable.Write(t.out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "dahl %s, commit %s, on %d cores of %s; seed %d, %.0f s in all.\n\n%s%s\n%s", cli.Version(), cli.ThisBuild().Commit,
			runtime.NumCPU(), host.CPUModel(), t.seed, t.took.Seconds(), t.head(), strings.Join(cli.Texts(t.rows, t.format), "\n"), t.summary())
		return err
	})
}
