package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/rundir/durable"
	"dahl/train/peer"
)

// peerReport is everything that `dahl-bench peers` says.
type peerReport struct {
	Build    cli.Build
	Programs []programReport
	Rows     []peerRow
	LeftOut  []string // what did not run, and why
}

// programReport is a program with its tried settings.
type programReport struct {
	Name     string
	Doc      string
	Versions peer.Versions
	Settings []settingReport
}

// settingReport is a setting, and what the program's own kernels are for.
type settingReport struct{ Name, Doc, Capability string }

// note adds a setting of a program, which it says of itself.
func (r *peerReport) note(p peer.Program, s peer.Setting, said peer.Versions) {
	i := slices.IndexFunc(r.Programs, func(of programReport) bool { return of.Name == p.Name })
	if i < 0 {
		i, r.Programs = len(r.Programs), append(r.Programs, programReport{Name: p.Name, Doc: p.Doc, Versions: said})
	}
	setting := settingReport{s.Name, s.Doc, said.Capability}
	if all := &r.Programs[i].Settings; !slices.Contains(*all, setting) {
		*all = append(*all, setting)
	}
}

// peerRow is a network, batch, unit and mode. Rates are medians of
// samples per second; spreads and the loss error are fractions.
type peerRow struct {
	Model string
	Batch int
	peerUnit
	Mode       string
	Ours       float64
	OursSpread float64
	LossError  float64
	OtherLoad  float64    // cores that other processes kept busy
	Finalists  []finalist // the fastest first
	Energy     *peerEnergy
}

// finalist is a setting that alternated with dahl.
type finalist struct {
	Program     string
	Setting     string
	SamplesPerS float64
	Spread      float64
}

// save writes the report as far as it is, after every cell, so that an interrupted
// run keeps what it measured.
func (r *peerReport) save(path string) error {
	if path == "" {
		return nil
	}
	return durable.Write(path, r.print)
}

func (r *peerReport) print(w io.Writer) error {
	fmt.Fprintf(w, "dahl %s (commit %s) beside %s.\n", r.Build.Version, r.Build.Commit, strings.Join(r.versions(), ", "))
	for _, p := range r.Programs {
		fmt.Fprintf(w, "\nSettings of %s (%s):\n\n", p.Name, p.Doc)
		for _, s := range p.Settings {
			fmt.Fprintf(w, "- %s: %s (its kernels are for %s)\n", s.Name, s.Doc, s.Capability)
		}
	}
	for _, mode := range []struct{ mode, title string }{{peer.ModeTrain, "Training"}, {peer.ModeInfer, "Inference"}} {
		r.printRates(w, mode.mode, mode.title)
	}
	printEnergy(w, r.Rows)
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(w, "\n## Left out\n\n- %s\n", strings.Join(r.LeftOut, "\n- "))
	}
	return nil
}

// versions lists the versions of the programs and of their libraries, each once.
func (r *peerReport) versions() (all []string) {
	for _, p := range r.Programs {
		v := p.Versions.Program
		for _, more := range []string{p.Versions.Library, p.Versions.GPU} {
			if more != "" {
				v += " with " + more
			}
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// printRates writes the table of a mode, with columns for each program.
func (r *peerReport) printRates(w io.Writer, mode, title string) {
	head, line := "| network | batch | on | dahl | spread |", "| --- | ---: | --- | ---: | ---: |"
	for _, p := range r.Programs {
		head += " " + p.Name + " | spread | its best setting | ratio |"
		line += " ---: | ---: | --- | ---: |"
	}
	title = fmt.Sprintf("\n## %s, samples per second\n\n%s loss differs by | load of others |\n%s ---: | ---: |\n", title, head, line)
	for _, c := range r.Rows {
		if c.Mode != mode {
			continue
		}
		fmt.Fprintf(w, "%s| %s | %d | %v | %.0f | %.0f %% |", title, c.Model, c.Batch, c.peerUnit, c.Ours, 100*c.OursSpread)
		title = ""
		for _, p := range r.Programs {
			f := c.best(p.Name)
			if f == nil {
				fmt.Fprint(w, " – | – | – | – |")
				continue
			}
			fmt.Fprintf(w, " %.0f | %.0f %% | %s | %.2f |", f.SamplesPerS, 100*f.Spread, f.Setting, c.Ours/f.SamplesPerS)
		}
		fmt.Fprintf(w, " %.1g | %.2f cores |\n", c.LossError, c.OtherLoad)
	}
}

// best is the fastest finalist of a program; nil means none.
func (c *peerRow) best(program string) *finalist {
	for i := range c.Finalists {
		if c.Finalists[i].Program == program {
			return &c.Finalists[i]
		}
	}
	return nil
}
