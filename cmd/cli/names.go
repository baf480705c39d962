package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dahl/naming"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/models"
	"dahl/nn/weights"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule/policy"
)

// Texts is a list as texts, such as the names of a table's entries.
func Texts[T any](list []T, text func(T) string) (texts []string) {
	for _, entry := range list {
		texts = append(texts, text(entry))
	}
	return texts
}

// PolicyNames are the schedulers to choose from. A plan is replayed with --plan.
func PolicyNames() (names []string) {
	for _, policy := range append(policy.All(), policy.Pipelines()...) {
		names = append(names, policy.Doc().Name)
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
	return p, AsInput(err)
}

// ModelNames are the built-in networks.
func ModelNames() []string {
	return Texts(models.All(), func(m models.Info) string { return m.Name })
}

// LoadModel finds a built-in model or reads a model file.
func LoadModel(name string) (*nn.Model, error) {
	ext := strings.ToLower(filepath.Ext(name))
	if what, foreign := foreignModels[ext]; foreign {
		hint := ""
		if slices.Contains(weights.Endings(), ext) {
			hint = "; weights are read with --init"
		}
		return nil, InputErrorf("--model %s: files of %s cannot be read as a network; export it as .onnx, or write its layers as a .toml file, as in nn/examples/model.toml%s", name, what, hint)
	}
	if IsModelFile(name) {
		if err := CheckWhole(name); err != nil {
			return nil, err
		}
		m, err := files.LoadModel(name)
		return m, AsInput(err)
	}
	if known := ModelNames(); !slices.Contains(known, name) {
		return nil, InputErrorf("--model %q: want %s, or a model file (.toml or .onnx)%s", name, strings.Join(known, ", "), naming.DidYouMean(name, known))
	}
	m, err := models.ByName(name)
	return m, AsInput(err)
}

// IsModelFile reports whether a name is a model file, and not a built-in model.
func IsModelFile(model string) bool {
	return strings.HasSuffix(model, ".toml") || strings.EqualFold(filepath.Ext(model), ".onnx") || strings.ContainsRune(model, os.PathSeparator)
}
