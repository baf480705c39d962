package files

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/rates"
	"dahl/platform/tomlfile"
)

// LoadModel reads a model file; see [ParseModel], and [ParseONNX] for a name that ends in .onnx.
func LoadModel(path string) (*nn.Model, error) {
	if strings.EqualFold(filepath.Ext(path), ".onnx") {
		return loadONNX(path)
	}
	src, err := tomlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return ParseModel(src, path)
}

// LoadLowering reads a lowering file; see [ParseLowering].
func LoadLowering(path string) (dag.Lowering, error) {
	src, err := tomlfile.Read(path)
	if err != nil {
		return dag.Lowering{}, fmt.Errorf("read lowering: %w", err)
	}
	return ParseLowering(src, path)
}

// ParseModel reads a model in TOML, as in examples/model.toml: name, input, one
// [[layer]] per layer with its kind, name, input, weights_of and the keys that [layers.All] lists, or for the layers of a [[block]] as in examples/resnet18.toml, and
// optionally [train] with batch, optimizer and its numbers, schedule, loss, label_smoothing, ignored_labels, mask_token and
// clip_norm. The file's name is for errors: they say file, line, key, value and what to write.
func ParseModel(src []byte, file string) (*nn.Model, error) {
	f, root, err := tomlfile.Parse(src, file)
	if err != nil {
		return nil, err
	}
	root.Need("name", `"lenet5"`)
	root.Need("input", "the shape of one sample, [1, 28, 28]")
	name, input := root.Text("name"), shapeIn(root, "input")
	r := layerReader{blocks: blocksOf(root)}
	for _, t := range root.Tables("layer") {
		r.read(t)
	}
	var defaults *nn.Defaults
	if t := root.Table("train"); t != nil {
		defaults = training(t)
	}
	root.Done("name, input, [[layer]], [[block]], train")
	if r.layers == nil {
		f.FailAt("", "", "layer is missing; write at least one [[layer]]")
	}
	if f.Err != nil {
		return nil, f.Err
	}
	m, err := nn.New(name, input, r.layers...)
	if at, ok := errors.AsType[*nn.Fault](err); ok {
		path := at.Key
		if at.Layer >= 0 {
			path = r.from[at.Layer] + path
		}
		return nil, fmt.Errorf("%s:%d: %w", file, f.Line(path), err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if defaults != nil {
		m.Defaults = *defaults
	}
	m.OutputsAt = fmt.Sprintf("%s:%d", file, f.Line(r.from[len(r.from)-1]+".outputs"))
	return m, nil
}

func shapeIn(t *tomlfile.Table, key string) (shape []int) {
	v, _ := t.Take(key)
	list, ok := v.([]any)
	for _, e := range list {
		n, isInt := e.(int64)
		ok = ok && isInt && n >= 1 && n <= layers.MaxExtent
		shape = append(shape, int(n))
	}
	if !ok {
		t.Fail(key, v, "write the shape of one sample, as in input = [1, 28, 28]")
	}
	return shape
}

// layerOf reads one [[layer]] whose kind no block defines.
func layerOf(t *tomlfile.Table, blocks []layerBlock) nn.Layer {
	kind := t.Text("kind")
	info, err := layers.ByName(kind)
	if err != nil {
		names := strings.Join(naming.List(layers.All(), func(k layers.Info) string { return k.Kind }), ", ")
		for _, b := range blocks {
			names += ", " + b.kind
		}
		t.Fail("kind", kind, "write one of "+names)
		return nil
	}
	known := "kind, name, input, " + nn.WeightsOf
	n := nn.Named{}
	if _, shares := t.Keys[nn.WeightsOf]; shares {
		n.Shares = []string{t.Text(nn.WeightsOf)}
	}
	if _, named := t.Keys["input"]; named {
		if n.Inputs = t.Texts("input"); n.Inputs == nil {
			t.Fail("input", "[]", "write the names of earlier layers, or leave it out for the layer before")
		}
	}
	s := layers.Settings{}
	for _, key := range info.Keys {
		known += ", " + key.Name
		s.Set(key.Name, valueOf(&key, t)...)
	}
	n.Name = t.Text("name")
	t.Done(known)
	n.Layer = info.New(s)
	return n
}

// valueOf takes a key's value from the table of a layer.
func valueOf(k *layers.Key, t *tomlfile.Table) []float64 {
	list, isList := t.Keys[k.Name].([]any)
	switch {
	case k.Flag:
		if t.Flag(k.Name, k.Default == 1) {
			return []float64{1}
		}
		return []float64{0}
	case isList && k.Sides > 0:
		t.Take(k.Name)
		return sidesOf(k, t, list)
	case k.Needed:
		what := "whole number"
		if k.Fraction {
			what = "number"
		}
		t.Need(k.Name, fmt.Sprintf("a %s from %.0f to %.0f", what, k.Min, k.Max))
	}
	if !k.Fraction {
		return []float64{float64(t.Count(k.Name, int(k.Min), int(k.Max), int(k.Default)))}
	}
	x := t.Number(k.Name, k.Default)
	if !(x >= k.Min && x <= k.Max) {
		t.Fail(k.Name, x, fmt.Sprintf("want a number from %g to %g", k.Min, k.Max))
	}
	return []float64{x}
}

// sidesOf is the numbers of a list.
func sidesOf(k *layers.Key, t *tomlfile.Table, list []any) (all []float64) {
	ok := len(list) == 2 || len(list) == k.Sides
	for _, e := range list {
		n, whole := e.(int64)
		ok = ok && whole && n >= int64(k.Min) && n <= int64(k.Max)
		all = append(all, float64(n))
	}
	if !ok {
		text := fmt.Sprintf("want [rows, columns], whole numbers from %.0f to %.0f", k.Min, k.Max)
		if k.Sides == 4 {
			text += ", or [top, left, bottom, right]"
		}
		t.Fail(k.Name, list, text)
		return []float64{k.Default}
	}
	return all
}

// training reads the table [train], or gives the defaults of New.
func training(t *tomlfile.Table) *nn.Defaults {
	d := &nn.Defaults{Batch: t.Count("batch", 1, layers.MaxExtent, 32)}
	name := "sgd"
	if _, ok := t.Keys["optimizer"]; ok {
		name = t.Text("optimizer")
	}
	info, err := nn.OptimizerByName(name)
	if err != nil {
		t.Fail("optimizer", name, "write one of "+strings.Join(naming.List(nn.Optimizers(), func(o nn.OptimizerInfo) string { return o.Name }), ", "))
		return d
	}
	number := func(key string, otherwise float64) float64 {
		x := t.Number(key, otherwise)
		if !(x >= 0 && x <= math.MaxFloat32) {
			t.Fail(key, x, "write a number of at least 0")
		}
		return x
	}
	if _, ok := t.Keys["schedule"]; ok {
		text := t.Text("schedule")
		if d.Schedule, err = rates.Parse(text); err != nil {
			t.Fail("schedule", text, err.Error())
		}
	}
	d.MaskToken = t.Count("mask_token", 0, layers.MaxExtent, 0)
	d.Loss = nn.Loss{Name: t.Text("loss"), LabelSmoothing: number("label_smoothing", 0), Ignored: t.Flag("ignored_labels", false) || d.MaskToken > 0}
	if err := d.Loss.Check(); err != nil {
		t.File.FailAt(t.Path, t.Owner, err.Error())
	}
	d.ClipNorm = number("clip_norm", 0)
	known := "batch, optimizer, schedule, loss, label_smoothing, ignored_labels, mask_token, clip_norm, lr, weight_decay, "
	switch o := info.New().(type) {
	case nn.SGD:
		d.Optimizer = nn.SGD{
			LearningRate: number("lr", o.LearningRate), Momentum: number("momentum", 0),
			WeightDecay: number("weight_decay", 0), Nesterov: t.Flag("nesterov", false),
		}
		t.Done(known + "momentum, nesterov")
	case nn.Adam:
		d.Optimizer = nn.Adam{
			LearningRate: number("lr", o.LearningRate), Beta1: number("beta1", o.Beta1), Beta2: number("beta2", o.Beta2),
			Eps: number("eps", o.Eps), WeightDecay: number("weight_decay", o.WeightDecay), Decoupled: o.Decoupled,
			DecayDims: t.Count("decay_dims", 0, nn.MostDecayDims, 0),
		}
		t.Done(known + "beta1, beta2, eps, decay_dims")
	}
	if err := d.Optimizer.Check(); err != nil {
		t.File.FailAt(t.Path, t.Owner, err.Error())
	}
	return d
}

// Keys of a lowering file.
const (
	recomputeKey    = "recompute"     // in addition to the cuts of a layer, or patterns of the names of layers
	microBatchesKey = "micro_batches" // of the network
	orderKey        = "order"         // of its micro-batches
	stageKey        = "stage"         // of its pipeline
	joinLossKey     = "join_loss"
	epiloguesKey    = "epilogues"
	stashKey        = "stash"         // weights
	verticalSyncKey = "vertical_sync" // of stashed weights
)

// ParseLowering reads a lowering in TOML, as in examples/lowering.toml:
// micro_batches, join_loss, epilogues, order, stash, vertical_sync, recompute with patterns of layers, one [[stage]] per stage of a pipeline, [default] and [layer.NAME].
// A stage has the keys from, its first layer, and device, or devices with along, sum, replicas, shares and bucket_bytes. Each other table has the cut of the forward pass (see [dag.Cut]), tables
// input_gradient and weight_gradient with the cuts of the gradients, and recompute. Whether the layers exist is checked when a model is lowered, and whether
// devices and orders do, when it is planned for.
func ParseLowering(src []byte, file string) (dag.Lowering, error) {
	f, root, err := tomlfile.Parse(src, file)
	if err != nil {
		return dag.Lowering{}, err
	}
	l := dag.Lowering{Default: granularityOf(root.Table("default"))}
	l.MicroBatches, l.JoinLoss = root.Count(microBatchesKey, 0, layers.MaxExtent, 0), root.Flag(joinLossKey, false)
	l.Epilogues = root.Flag(epiloguesKey, false)
	l.Order, l.Stash, l.VerticalSync = root.Text(orderKey), root.Flag(stashKey, false), root.Flag(verticalSyncKey, false)
	l.Recompute = root.Texts(recomputeKey)
	for _, t := range root.Tables(stageKey) {
		t.Need("from", "the name of its first layer")
		l.Stages = append(l.Stages, stageOf(t))
	}
	if l.Order != "" && l.Stages == nil {
		root.Fail(orderKey, l.Order, "only stages have an order; write at least one [[stage]], or leave the line out")
	}
	if l.VerticalSync && !l.Stash {
		root.Fail(verticalSyncKey, true, "only stashed weights have versions; write stash = true, or leave the line out")
	}
	if layout := root.Text("layout"); layout != "" && layout != "nhwc" { // older files have both keys
		root.Fail("layout", layout, `images have their channels last: write "nhwc", or leave the line out`)
	}
	if !root.Flag("fused", true) {
		root.Fail("fused", false, "layers that one operation computes are one task: write true, or leave the line out")
	}
	if layers := root.Table("layer"); layers != nil {
		for _, name := range slices.Sorted(maps.Keys(layers.Keys)) {
			if l.Layers == nil {
				l.Layers = map[string]dag.LayerLowering{}
			}
			l.Layers[name] = granularityOf(layers.Table(name))
		}
	}
	root.Done(microBatchesKey + ", " + joinLossKey + ", " + epiloguesKey + ", " + orderKey + ", " + stashKey + ", " + verticalSyncKey + ", " + recomputeKey + ", [[" + stageKey + "]], default, layer")
	return l, f.Err
}

// stageOf reads a [[stage]].
func stageOf(t *tomlfile.Table) dag.Stage {
	s := dag.Stage{From: t.Text("from")}
	if _, shared := t.Keys["devices"]; shared {
		s.Devices = t.Texts("devices")
		if s.Devices == nil {
			t.Fail("devices", "[]", "write the names of the devices that share the stage")
		}
		nameIn(t, "along", &s.Along)
		nameIn(t, "sum", &s.Sum)
		nameIn(t, "statistics", &s.Statistics)
		s.Replicas, s.Shares = t.Count("replicas", 0, len(s.Devices), 0), t.Counts("shares", 1, layers.MaxExtent)
		s.PerNode = t.Count("per_node", 0, len(s.Devices), 0)
		s.BucketBytes = int64(t.Count("bucket_bytes", 0, layers.MaxExtent, 0))
		if _, both := t.Keys["device"]; both {
			t.Fail("device", t.Text("device"), "write device or devices")
		}
	} else {
		t.Need("device", "the name of a device, a unit or a kind")
		s.Device = t.Text("device")
	}
	t.Done("from, device, devices, and beside devices along, sum, statistics, replicas, shares, per_node, bucket_bytes")
	return s
}

// nameIn reads a name of a table, if the key is there.
func nameIn(t *tomlfile.Table, key string, to encoding.TextUnmarshaler) {
	if _, there := t.Keys[key]; !there {
		return
	}
	text := t.Text(key)
	if err := to.UnmarshalText([]byte(text)); err != nil {
		t.Fail(key, text, err.Error())
	}
}

// granularityOf reads the cuts of a layer. The table may be nil.
func granularityOf(t *tomlfile.Table) (l dag.LayerLowering) {
	if t == nil {
		return l
	}
	known := cutOf(t, &l.Forward)
	for _, pass := range []dag.Pass{dag.InputGradientPass, dag.WeightGradientPass} {
		known += ", " + pass.String()
		if of := t.Table(pass.String()); of != nil {
			of.Done(cutOf(of, l.Cut(pass)))
		}
	}
	l.Recompute = t.Flag(recomputeKey, false)
	t.Done(known + ", " + recomputeKey)
	return l
}

// cutOf reads the numbers of a cut, and lists their keys.
func cutOf(t *tomlfile.Table, c *dag.Cut) string {
	var keys []string
	for d := range dag.NumNumbers {
		keys = append(keys, d.String())
		*c.Of(d) = t.Count(d.String(), 0, layers.MaxExtent, 0)
	}
	return strings.Join(keys, ", ")
}

// WriteLowering writes a lowering as a file that [ParseLowering] reads back,
// layers in the order of their names.
func WriteLowering(w io.Writer, l dag.Lowering) error {
	var b strings.Builder
	if l.MicroBatches != 0 {
		fmt.Fprintf(&b, "%s = %d\n\n", microBatchesKey, l.MicroBatches)
	}
	if l.JoinLoss {
		fmt.Fprintf(&b, "%s = true\n\n", joinLossKey)
	}
	if l.Epilogues {
		fmt.Fprintf(&b, "%s = true\n\n", epiloguesKey)
	}
	if l.Order != "" {
		fmt.Fprintf(&b, "%s = %q\n\n", orderKey, l.Order)
	}
	if l.Stash {
		fmt.Fprintf(&b, "%s = true\n\n", stashKey)
	}
	if l.VerticalSync {
		fmt.Fprintf(&b, "%s = true\n\n", verticalSyncKey)
	}
	if l.Recompute != nil {
		fmt.Fprintf(&b, "%s = [%s]\n\n", recomputeKey, strings.Join(naming.List(l.Recompute, strconv.Quote), ", "))
	}
	for _, s := range l.Stages {
		fmt.Fprintf(&b, "[[%s]]\nfrom = %q\n", stageKey, s.From)
		if s.Devices == nil {
			fmt.Fprintf(&b, "device = %q\n\n", s.Device)
		} else {
			fmt.Fprintf(&b, "devices = [%s]\nalong = %q\nsum = %q\n", strings.Join(naming.List(s.Devices, strconv.Quote), ", "), s.Along, s.Sum)
			if s.Replicas > 0 {
				fmt.Fprintf(&b, "replicas = %d\n", s.Replicas)
			}
			if s.PerNode > 0 {
				fmt.Fprintf(&b, "per_node = %d\n", s.PerNode)
			}
			if s.BucketBytes > 0 {
				fmt.Fprintf(&b, "bucket_bytes = %d\n", s.BucketBytes)
			}
			if s.Statistics != dag.ByNumber {
				fmt.Fprintf(&b, "statistics = %q\n", s.Statistics)
			}
			if s.Shares != nil {
				fmt.Fprintf(&b, "shares = [%s]\n", strings.Join(naming.List(s.Shares, strconv.Itoa), ", "))
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprint(&b, "[default]\n")
	writeGranularity(&b, l.Default)
	for _, name := range slices.Sorted(maps.Keys(l.Layers)) {
		fmt.Fprintf(&b, "\n[layer.%q]\n", name)
		writeGranularity(&b, l.Layers[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGranularity writes the cuts of a layer and whether it is recomputed.
// Samples and outputs of the forward pass stand there in any case, to be edited.
func writeGranularity(b *strings.Builder, ll dag.LayerLowering) {
	for pass := range dag.NumPasses {
		var set []string
		for d := range dag.NumNumbers {
			if n := *ll.Cut(pass).Of(d); n != 0 || pass == dag.ForwardPass && (d == dag.AlongSamples || d == dag.AlongOutputs) {
				set = append(set, fmt.Sprintf("%s = %d", d, n))
			}
		}
		switch {
		case pass == dag.ForwardPass:
			fmt.Fprintln(b, strings.Join(set, "\n"))
		case set != nil:
			fmt.Fprintf(b, "%s = { %s }\n", pass, strings.Join(set, ", "))
		}
	}
	if ll.Recompute {
		fmt.Fprintf(b, "%s = true\n", recomputeKey)
	}
}
