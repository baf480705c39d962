package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/nn"
	"dahl/schedule"
)

// didYouMean suggests the known name that is nearest to one that is not known, for the end
// of a message; empty where none is near.
func didYouMean(name string, known []string) string {
	best, least := "", len(name)/3+1 // more differences make another word
	for _, k := range known {
		if d := differences(strings.ToLower(name), strings.ToLower(k)); d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s", best)
}

// differences counts the letters to insert, remove or replace that make one word of another
// (the Levenshtein distance).
func differences(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, one to the left
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// oneOf lists names as a sentence does: "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func optimizerNames() (names []string) {
	for _, info := range nn.Optimizers() {
		names = append(names, info.Name)
	}
	return names
}

// policyNames are the schedulers to choose from. A plan is replayed with --plan.
func policyNames() (names []string) {
	for _, info := range schedule.Policies() {
		if info.Dynamic != nil || info.Static != nil {
			names = append(names, info.Name)
		}
	}
	return names
}

// setPolicy takes the name of a scheduler in any case.
func (o *options) setPolicy() error {
	names := policyNames()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, o.Policy) })
	if i < 0 {
		return fmt.Errorf("--policy %q: want one of %s; a plan is replayed with --plan%s", o.Policy, strings.Join(names, ", "), didYouMean(o.Policy, names))
	}
	o.Policy = names[i]
	return nil
}

// modelNames are the built-in networks.
func modelNames() (names []string) {
	for _, info := range nn.Models() {
		names = append(names, info.Name)
	}
	return names
}

// foreignModels are the files of other programs, by extension.
var foreignModels = map[string]string{
	".onnx": "ONNX", ".py": "Python", ".pt": "PyTorch", ".pth": "PyTorch", ".pt2": "PyTorch", ".h5": "Keras", ".keras": "Keras",
	".pb": "TensorFlow", ".tflite": "TensorFlow Lite", ".safetensors": "safetensors", ".npz": "weights",
}

// checkModelFile refuses what cannot be read as a network, by the name of the file.
func checkModelFile(name string) error {
	what, foreign := foreignModels[strings.ToLower(filepath.Ext(name))]
	if !foreign {
		return nil
	}
	hint := ""
	if what == "weights" {
		hint = "; weights are read with --init"
	}
	return inputErrorf("--model %s: files of %s cannot be read as a network; write its layers as a .toml file, as in nn/examples/model.toml%s", name, what, hint)
}

// wantArgs refuses a wrong number of arguments and says which there should be.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s wants %s; there are %d arguments", cmd.Name(), what, len(args))
		}
		return nil
	}
}
