package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dahl/nn"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule"
)

// DidYouMean suggests the known name that is nearest to one that is not known, for the end
// of a message; empty where none is near.
func DidYouMean(name string, known []string) string {
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

// OneOf lists names as a sentence does: "a, b or c".
func OneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Texts is a list as texts, such as the names of a table's entries.
func Texts[T any](list []T, text func(T) string) (texts []string) {
	for _, entry := range list {
		texts = append(texts, text(entry))
	}
	return texts
}

// PolicyNames are the schedulers to choose from. A plan is replayed with --plan.
func PolicyNames() (names []string) {
	for _, info := range schedule.Policies() {
		if info.Dynamic != nil || info.Static != nil {
			names = append(names, info.Name)
		}
	}
	return names
}

// foreignModels are the files of other programs, by extension.
var foreignModels = map[string]string{
	".py": "Python", ".pt": "PyTorch", ".pth": "PyTorch", ".pt2": "PyTorch", ".h5": "Keras", ".keras": "Keras",
	".pb": "TensorFlow", ".tflite": "TensorFlow Lite", ".safetensors": "safetensors", ".npz": "weights",
}

// LoadPlatform reads a platform file, or one that ships with dahl by its name.
func LoadPlatform(name string) (*platform.Platform, error) {
	if err := CheckWhole(name); err != nil {
		return nil, err
	}
	p, err := platforms.Load(name)
	if err == nil {
		return p, nil
	}
	if _, missing := os.Stat(name); missing != nil {
		err = fmt.Errorf("%w%s", err, DidYouMean(name, platforms.Names()))
	}
	return nil, AsInput(err)
}

// LoadModel finds a built-in model or reads a model file.
func LoadModel(name string) (*nn.Model, error) {
	ext := strings.ToLower(filepath.Ext(name))
	if what, foreign := foreignModels[ext]; foreign {
		hint := ""
		if ext == ".npz" {
			hint = "; weights are read with --init"
		}
		return nil, InputErrorf("--model %s: files of %s cannot be read as a network; export it as .onnx, or write its layers as a .toml file, as in nn/examples/model.toml%s", name, what, hint)
	}
	if IsModelFile(name) {
		if err := CheckWhole(name); err != nil {
			return nil, err
		}
		m, err := nn.LoadModel(name)
		return m, AsInput(err)
	}
	m, err := nn.ModelByName(name)
	if err != nil {
		builtIn := Texts(nn.Models(), func(m nn.ModelInfo) string { return m.Name })
		return nil, InputErrorf("%v, and no model file (.toml or .onnx)%s", err, DidYouMean(name, builtIn))
	}
	return m, nil
}

// IsModelFile tells the name of a model file from that of a built-in model.
func IsModelFile(model string) bool {
	return strings.HasSuffix(model, ".toml") || strings.EqualFold(filepath.Ext(model), ".onnx") || strings.ContainsRune(model, os.PathSeparator)
}
