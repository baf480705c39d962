package record

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dahl/cmd/cli"
)

// Recipe is everything that decides the numbers of a training, in a form with one text for one training. Every
// checkpoint holds it, so that no other training goes on from there, whatever the manifest in the directory says.
type Recipe struct {
	// Fixed are the options that no flag of --resume changes, by their name in the manifest, and the contents of files and data.
	Fixed map[string]string `json:"fixed"`
	// Graphs and Variants are hashes of what else decides the last bits. A training may go on with others, which is said.
	Graphs   string `json:"graphs_sha256"`
	Variants string `json:"variants_sha256"`
}

// contentsOf begins the names of hashes.
const contentsOf = "contents of "

// Undecided are the options that decide nothing: the flags that may be given with --resume, and whether
// the data fit the memory. What they do to last bits is in the graphs and variants.
func Undecided() []string {
	keys := []string{"clocks", "stream"} // of --clock, and of no flag
	for _, flag := range ResumeFlags {
		keys = append(keys, strings.ReplaceAll(flag, "-", "_"))
	}
	return keys
}

// Recipe returns the recipe of a training. An option that is new is part of it by itself.
func (m *Manifest) Recipe() Recipe {
	options, err := json.Marshal(&m.Options)
	cli.Must(err)
	var all map[string]json.RawMessage
	cli.Must(json.Unmarshal(options, &all))
	fixed := map[string]string{}
	for key, value := range all {
		if !slices.Contains(Undecided(), key) {
			fixed[key] = string(value)
		}
	}
	for _, in := range m.Inputs {
		if in.Name == m.Options.Model || in.Name == m.Options.Init {
			fixed[contentsOf+in.Name] = in.SHA256
		}
	}
	if m.Data != nil {
		fixed[contentsOf+m.Data.Name] = m.Data.SHA256
	}
	return Recipe{fixed, HashOf(m.Graphs), HashOf(m.Variants)}
}

// HashOf is a hash of what a value is as JSON.
func HashOf(v any) string {
	text, err := json.Marshal(v)
	cli.Must(err)
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Difference says what else decides the numbers of another training; empty means nothing.
func (r *Recipe) Difference(now Recipe) string {
	both := maps.Clone(r.Fixed)
	maps.Copy(both, now.Fixed)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		was, is := r.Fixed[key], now.Fixed[key]
		file, contents := strings.CutPrefix(key, contentsOf)
		switch {
		case was == is:
		case contents && was != "" && is != "":
			return file + " has changed since the training began"
		default:
			return fmt.Sprintf("the checkpoint was made with %s, and this training is with %s", setting(key, was), setting(key, is))
		}
	}
	return ""
}

// setting is an option and its value.
func setting(key, value string) string {
	if value == "" {
		return "no " + key
	}
	return key + " " + value
}

// Resumption is where a training went on.
type Resumption struct {
	AfterStep int `json:"after_step"`
	// Alike reports that graphs and kernels were unchanged, so that the weights are unchanged too.
	Alike bool `json:"alike"`
}

// ResumeFlags may be given with --resume. They decide where and how a training runs, and not its
// numbers.
var ResumeFlags = []string{"resume", "platform", "devices", "clock", "workers", "policy", "plan", "lowering", "variant", "precision", "epochs",
	"record", "checkpoint", "continue-on-loss", "continue-on-nan", "set-clocks", "ignore-clocks", "save", "json"}
