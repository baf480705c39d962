package nn

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"dahl/dag"
)

// maxFileBytes bounds a model or lowering file, since people write these.
const maxFileBytes = 1 << 20

// LoadModel reads a model file; see [ParseModel].
func LoadModel(path string) (*Model, error) {
	src, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return ParseModel(src, path)
}

// LoadLowering reads a lowering file; see [ParseLowering].
func LoadLowering(path string) (dag.Lowering, error) {
	src, err := readSmall(path)
	if err != nil {
		return dag.Lowering{}, fmt.Errorf("read lowering: %w", err)
	}
	return ParseLowering(src, path)
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s: %d bytes; at most %d are read", path, info.Size(), maxFileBytes)
	}
	return os.ReadFile(path)
}

// ParseModel reads a model in TOML, as in examples/model.toml: name, input, one
// [[layer]] per layer with its kind and the keys that [Layers] lists, and
// optionally [train] with batch, optimizer and its numbers. The file's name is for
// errors, which say file, line, key, value and what to write.
func ParseModel(src []byte, file string) (*Model, error) {
	d, err := decode(src, file)
	if err != nil {
		return nil, err
	}
	root := d.root()
	root.allow("name", "input", "layer", "train")
	name := root.text("name", "")
	if name == "" {
		root.fail("name", `name the model, as in name = "lenet5"`)
	}
	input := root.ints("input")
	var layers []Layer
	for _, t := range root.tables("layer") {
		layers = append(layers, t.layer())
	}
	defaults := root.table("train").training()
	if d.err != nil {
		return nil, d.err
	}
	m, err := New(name, input, layers...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m.Defaults = defaults
	return m, nil
}

// layer reads one [[layer]].
func (t *table) layer() Layer {
	info, err := LayerByName(t.text("kind", ""))
	if err != nil {
		t.fail("kind", "write one of "+namesOf(Layers()))
		return nil
	}
	allowed := []string{"kind", "name"}
	s := Settings{}
	for _, key := range info.Keys {
		allowed = append(allowed, key.Name)
		if key.Flag {
			s[key.Name] = t.flag(key.Name, key.Default)
		} else {
			s[key.Name] = t.int(key.Name, key.Min, key.Max, key.Default)
		}
	}
	t.allow(allowed...)
	if name := t.text("name", ""); name != "" {
		return Named{name, info.New(s)}
	}
	return info.New(s)
}

// training reads the table [train], or gives the defaults of New.
func (t *table) training() Defaults {
	d := Defaults{Batch: t.int("batch", 1, maxExtent, 32)}
	common := []string{"batch", "optimizer", "lr", "weight_decay"}
	info, err := OptimizerByName(t.text("optimizer", "sgd"))
	if err != nil {
		t.fail("optimizer", "write one of "+namesOf(Optimizers()))
		return d
	}
	switch o := info.New().(type) {
	case SGD:
		t.allow(append(common, "momentum", "nesterov")...)
		d.Optimizer = SGD{
			LearningRate: t.float("lr", o.LearningRate), Momentum: t.float("momentum", 0),
			WeightDecay: t.float("weight_decay", 0), Nesterov: t.flag("nesterov", 0) == 1,
		}
	case Adam:
		t.allow(append(common, "beta1", "beta2", "eps")...)
		d.Optimizer = Adam{
			LearningRate: t.float("lr", o.LearningRate), Beta1: t.float("beta1", o.Beta1), Beta2: t.float("beta2", o.Beta2),
			Eps: t.float("eps", o.Eps), WeightDecay: t.float("weight_decay", 0),
		}
	}
	if err := d.Optimizer.Check(); err != nil {
		t.fail("", err.Error())
	}
	return d
}

// ParseLowering reads a lowering in TOML, as in examples/lowering.toml: layout,
// fused, [default] and [layer.NAME] with samples, outputs, grad_outputs, grad_samples and
// accumulators. Whether the layers exist is checked when a model is lowered.
func ParseLowering(src []byte, file string) (dag.Lowering, error) {
	d, err := decode(src, file)
	if err != nil {
		return dag.Lowering{}, err
	}
	root := d.root()
	root.allow("layout", "fused", "default", "layer")
	l := dag.Lowering{Layout: root.text("layout", ""), Fused: root.flag("fused", 1) == 1, Default: root.table("default").granularity()}
	if l.Layout != "" && l.Layout != dag.NCHW && l.Layout != dag.NHWC {
		root.fail("layout", `write "nchw" or "nhwc"`)
	}
	layers := root.table("layer")
	for _, name := range layers.names() {
		if l.Layers == nil {
			l.Layers = map[string]dag.LayerLowering{}
		}
		l.Layers[name] = layers.table(name).granularity()
	}
	return l, d.err
}

func (t *table) granularity() dag.LayerLowering {
	t.allow("samples", "outputs", "grad_outputs", "grad_samples", "accumulators")
	return dag.LayerLowering{
		SampleTile:     t.int("samples", 0, maxExtent, 0),
		OutputTile:     t.int("outputs", 0, maxExtent, 0),
		GradTile:       t.int("grad_outputs", 0, maxExtent, 0),
		GradSampleTile: t.int("grad_samples", 0, maxExtent, 0),
		Accumulators:   t.int("accumulators", 0, maxExtent, 1),
	}
}

// WriteLowering writes a lowering as a file that [ParseLowering] reads back,
// layers in the order of their names.
func WriteLowering(w io.Writer, l dag.Lowering) error {
	var b strings.Builder
	if l.Layout != "" {
		fmt.Fprintf(&b, "layout = %q\n", l.Layout)
	}
	fmt.Fprintf(&b, "fused = %v\n\n[default]\n", l.Fused)
	writeGranularity(&b, l.Default)
	for _, name := range slices.Sorted(maps.Keys(l.Layers)) {
		fmt.Fprintf(&b, "\n[layer.%q]\n", name)
		writeGranularity(&b, l.Layers[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeGranularity(b *strings.Builder, ll dag.LayerLowering) {
	fmt.Fprintf(b, "samples = %d\noutputs = %d\ngrad_outputs = %d\ngrad_samples = %d\naccumulators = %d\n",
		ll.SampleTile, ll.OutputTile, ll.GradTile, ll.GradSampleTile, ll.Accumulators)
}
