package main

import (
	"fmt"
	"io"
	"strings"
)

// peerReport is everything that `bench peers` says.
type peerReport struct {
	Build build `json:"build"`
	torchVersion
	Settings []settingReport `json:"settings"`
	Rows     []peerRow       `json:"rows"`
	Layers   []layerRow      `json:"layers,omitempty"`
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
	Searched    []searchedSetting `json:"searched"`
	Energy      *peerEnergy       `json:"energy,omitempty"`
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
	var b strings.Builder
	r.print(&b)
	return writeFile(path, []byte(b.String()))
}

// finish prints the whole report.
func (r *peerReport) finish(asJSON bool, stdout io.Writer) error {
	if asJSON {
		return printJSON(stdout, r)
	}
	var b strings.Builder
	r.print(&b)
	_, err := io.WriteString(stdout, b.String())
	return err
}

func (r *peerReport) print(w io.Writer) {
	fmt.Fprintf(w, "dahl %s (commit %s) beside PyTorch %s with oneDNN %s.\n", r.Build.Version, r.Build.Commit, r.Torch, r.OneDNN)
	if r.GPU != "" {
		fmt.Fprintf(w, "GPU: %s; PyTorch's CUDA %s, cuDNN %s.\n", r.GPU, r.CUDA, r.CuDNN)
	}
	fmt.Fprint(w, "\nPyTorch's settings:\n\n")
	for _, s := range r.Settings {
		fmt.Fprintf(w, "- %s: %s (ATen uses %s)\n", s.Name, s.Doc, s.Capability)
	}
	for _, mode := range []struct{ mode, title string }{{modeTrain, "Training"}, {modeInfer, "Inference"}} {
		fmt.Fprintf(w, "\n## %s, images per second\n\n", mode.title)
		fmt.Fprintln(w, "| network | batch | on | dahl | spread | PyTorch | spread | PyTorch's best setting | ratio | loss differs by | load of others |")
		fmt.Fprintln(w, "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
		for i := range r.Rows {
			if c := &r.Rows[i]; c.Mode == mode.mode {
				fmt.Fprintf(w, "| %s | %d | %v | %.0f | %.0f %% | %.0f | %.0f %% | %s | %.2f | %.1g | %.2f cores |\n", c.Model, c.Batch, c.peerUnit,
					c.Ours, 100*c.OursSpread, c.Torch, 100*c.TorchSpread, c.Setting, c.Ratio, c.LossError, c.OtherLoad)
			}
		}
	}
	printEnergy(w, r.Rows)
	printLayers(w, r.Layers)
	fmt.Fprintf(w, "\n## PyTorch's build\n\n```\n%s\n```\n", strings.TrimSpace(r.Config))
}
