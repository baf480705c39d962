package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/plan/exact"
	"dahl/rundir/durable"
)

const planHead = "| machine | network | objective | plan | bound | gap, % | certificate | least of policies | gap, % | plan against it, % | no worse | the plan's devices and tiles | the policy's | took |\n" +
	"| --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- | --- | --- | ---: |\n"

// planUnits are the units of the table and how many of them one of the value is.
var planUnits = map[exact.Objective]struct {
	name string
	per  float64
}{exact.Time: {"ms", 1e3}, exact.Energy: {"mJ", 1e3}, exact.EDP: {"uJs", 1e6}}

// addingError is how much worse than a policy's run a plan may be as a sum of floating-point numbers.
const addingError = 1e-9

// noWorse reports whether a plan is at least as good as all policies.
func (r *planRow) noWorse() bool { return r.value <= r.leastValue*(1+addingError) }

// format is the row as a line of the table.
func (r *planRow) format() string {
	unit := planUnits[r.objective]
	number := func(value float64) string { return fmt.Sprintf("%.5g", value*unit.per) }
	over := func(a, b float64) string {
		if b <= 0 {
			return "none" // a bound for which there was no time
		}
		return fmt.Sprintf("%.2f", 100*(a/b-1))
	}
	noWorse := "yes"
	if !r.noWorse() {
		noWorse = "**no**"
	}
	return fmt.Sprintf("| %s | %s | %s, %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s, %s | %.0f s |", r.machine, r.network, r.objective, unit.name,
		number(r.value), number(r.found.Bound), over(r.value, r.found.Bound), r.certificate, number(r.leastValue), over(r.leastValue, r.found.Bound),
		over(r.value, r.leastValue), noWorse, r.found.Choice, r.least.choice, r.least.policy.Name, r.took.Seconds())
}

// planTable is the file of --out.
type planTable struct {
	path   string
	budget time.Duration
	rows   []*planRow
}

// add appends a row and writes the file.
func (t *planTable) add(r *planRow) error {
	t.rows = append(t.rows, r)
	if t.path == "" {
		return nil
	}
	return durable.Write(t.path, func(w io.Writer) error {
		lines := cli.Texts(t.rows, (*planRow).format)
		_, err := fmt.Fprintf(w, "dahl %s, commit %s; at most %v for a plan.\n\n%s%s\n%s", cli.Version(), cli.ThisBuild().Commit, t.budget, planHead, strings.Join(lines, "\n"), t.summary())
		return err
	})
}

// summary says how many plans are no worse than any policy, and what the policies ran on.
func (t *planTable) summary() string {
	good, machines := 0, ""
	for i, r := range t.rows {
		if r.noWorse() {
			good++
		}
		if i == 0 || t.rows[i-1].machine != r.machine {
			machines += fmt.Sprintf(" %s: %d of %d.", r.machine, r.sets, r.allSets)
		}
	}
	return fmt.Sprintf("\n%d of %d plans are no worse than the least of all policies. Sets of devices on which these ran:%s\n", good, len(t.rows), machines)
}
