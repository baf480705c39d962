package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/kernels"
	"dahl/rundir/durable"
)

// peerReport is everything that `dahl-bench peers` says.
type peerReport struct {
	Build cli.Build `json:"build"`
	torchVersion
	Settings []settingReport `json:"settings"`
	Rows     []peerRow       `json:"rows"`
	Layers   []layerRow      `json:"layers,omitempty"`
	LeftOut  []string        `json:"left_out,omitempty"` // what did not run, and why
}

type settingReport struct {
	Name       string `json:"name"`
	Doc        string `json:"doc"`
	Capability string `json:"capability"` // of ATen's own kernels
}

// peerRow is a network, batch, unit and mode. Rates are medians of
// images per second; spreads and the loss error are fractions.
type peerRow struct {
	Model string `json:"model"`
	Batch int    `json:"batch"`
	peerUnit
	Mode        string            `json:"mode"`
	Ours        float64           `json:"images_per_s"`
	OursSpread  float64           `json:"spread"`
	Torch       float64           `json:"torch_images_per_s"`
	TorchSpread float64           `json:"torch_spread"`
	Setting     string            `json:"torch_setting"`
	Ratio       float64           `json:"ratio"`
	LossError   float64           `json:"loss_error"`
	OtherLoad   float64           `json:"other_load"` // cores that other processes kept busy
	Finalists   []finalist        `json:"torch_finalists"`
	Searched    []searchedSetting `json:"searched"`
	Energy      *peerEnergy       `json:"energy,omitempty"`
}

// finalist is a setting that alternated with dahl; the fastest is the row's.
type finalist struct {
	Kind       string  `json:"kind"`
	Setting    string  `json:"setting"`
	ImagesPerS float64 `json:"images_per_s"`
	Spread     float64 `json:"spread"`
}

// searchedSetting is what the search saw of one setting, the best first.
type searchedSetting struct {
	Setting    string  `json:"setting"`
	ImagesPerS float64 `json:"images_per_s"`
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
	fmt.Fprintf(w, "dahl %s (commit %s) beside PyTorch %s with oneDNN %s.\n", r.Build.Version, r.Build.Commit, r.Torch, r.OneDNN)
	if r.GPU != "" {
		fmt.Fprintf(w, "GPU: %s; PyTorch's CUDA %s, cuDNN %s.\n", r.GPU, r.CUDA, r.CuDNN)
	}
	fmt.Fprint(w, "\nPyTorch's settings:\n\n")
	for _, s := range r.Settings {
		fmt.Fprintf(w, "- %s: %s (ATen uses %s)\n", s.Name, s.Doc, s.Capability)
	}
	for _, mode := range []struct{ mode, title string }{{modeTrain, "Training"}, {modeInfer, "Inference"}} {
		r.printRates(w, mode.mode, mode.title)
	}
	printEnergy(w, r.Rows)
	printLayers(w, r.Layers)
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(w, "\n## Left out\n\n- %s\n", strings.Join(r.LeftOut, "\n- "))
	}
	_, err := fmt.Fprintf(w, "\n## PyTorch's build\n\n```\n%s\n```\n", strings.TrimSpace(r.Config))
	return err
}

// ratesTables are those of a mode: of cells on cores with PyTorch's best setting, of those on a
// GPU with the best of each kind.
var ratesTables = []struct {
	device, head string
	kinds        []string
}{
	{kernels.DeviceCPU, "| network | batch | on | dahl | spread | PyTorch | spread | PyTorch's best setting | ratio | loss differs by | load of others |\n" +
		"| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n", []string{kindEager}},
	{kernels.CUDA, "| network | batch | on | dahl | spread | PyTorch eager | spread | setting | ratio | PyTorch compiled | spread | setting | ratio | loss differs by | load of others |\n" +
		"| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n", []string{kindEager, kindCompiled}},
}

// printRates writes the tables of a mode.
func (r *peerReport) printRates(w io.Writer, mode, title string) {
	title = fmt.Sprintf("\n## %s, images per second\n\n", title)
	for _, table := range ratesTables {
		head := table.head
		for _, c := range r.Rows {
			if c.Mode != mode || c.Device != table.device {
				continue
			}
			fmt.Fprintf(w, "%s%s| %s | %d | %v | %.0f | %.0f %% |", title, head, c.Model, c.Batch, c.peerUnit, c.Ours, 100*c.OursSpread)
			title, head = "", ""
			for _, kind := range table.kinds {
				fmt.Fprint(w, c.cellsOf(kind))
			}
			fmt.Fprintf(w, " %.1g | %.2f cores |\n", c.LossError, c.OtherLoad)
		}
	}
}

// cellsOf are the columns of the best finalist of a kind.
func (c *peerRow) cellsOf(kind string) string {
	i := slices.IndexFunc(c.Finalists, func(f finalist) bool { return f.Kind == kind })
	if i < 0 {
		return " – | – | – | – |"
	}
	f := c.Finalists[i]
	return fmt.Sprintf(" %.0f | %.0f %% | %s | %.2f |", f.ImagesPerS, 100*f.Spread, f.Setting, c.Ours/f.ImagesPerS)
}
