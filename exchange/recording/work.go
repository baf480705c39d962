package recording

import (
	"encoding/json"
	"strings"

	"dahl/dag"
)

// operands are the inputs of an operator, and its outputs where the file has them.
type operands struct{ inputs, outputs []operand }

// operand is a tensor, a list of tensors or a value.
type operand struct {
	shapes [][]int64
	kind   string // the element type of a tensor, in PyTorch's words; of other values what they are
	value  string
}

// work of an operator: operations, and bytes of its operands.
type work struct {
	flops float64
	bytes int64 // read and written, once each
	typ   dag.DType
}

// elementTypes are PyTorch's names of element types. float16 counts as bfloat16, which has its size and its speed.
var elementTypes = map[string]dag.DType{
	"float": dag.Float32, "double": dag.Float64, "c10::BFloat16": dag.BFloat16, "c10::Half": dag.BFloat16,
	"BFloat16": dag.BFloat16, "Half": dag.BFloat16, "Float": dag.Float32, "Double": dag.Float64, "Long": dag.Int64, "Int": dag.Int32, "Byte": dag.Uint8, "Bool": dag.Uint8,
	"long int": dag.Int64, "long": dag.Int64, "int": dag.Int32, "unsigned char": dag.Uint8, "signed char": dag.Uint8, "bool": dag.Uint8,
}

// elementBytes is the size of an element; 1 for a name that is not known.
func elementBytes(name string) int64 { return elementTypes[name].SizeBytes() }

// elementType of a tensor. An execution trace writes Tensor(float).
func (o *operand) elementType() (dag.DType, bool) {
	_, name, inside := strings.Cut(o.kind, "Tensor(")
	if !inside {
		name = o.kind
	}
	name, _, _ = strings.Cut(name, ")")
	if name == "TensorList" && len(o.shapes) > 0 {
		return dag.Float32, true // the file does not say which
	}
	t, ok := elementTypes[name]
	return t, ok
}

// shape of the only tensor; nil for other operands.
func (o *operand) shape() []int64 {
	if len(o.shapes) != 1 {
		return nil
	}
	return o.shapes[0]
}

func (o *operand) elements() (n int64) {
	for _, s := range o.shapes {
		n += product(s)
	}
	return n
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, e := range shape {
		n *= max(0, min(e, 1<<20))
		n = min(n, dag.MaxBufferElems)
	}
	return n
}

// A model gives the floating-point operations of an operator, and how many elements its output has.
type model func(a *operands) (flops float64, out int64, ok bool)

// models are the operators whose work follows from the shapes of their inputs, by the name without "aten::" and without
// underscores around it.
var models = map[string]model{
	"mm": matrices(0, 1), "addmm": matrices(1, 2), "bmm": matrices(0, 1), "baddbmm": matrices(1, 2), "linear": linear, "mv": matrices(0, 1),
	"convolution": convolution(4, 3, 5), "mkldnn_convolution": convolution(3, 4, 5), "miopen_convolution": convolution(3, 4, 5), "cudnn_convolution": convolution(2, 3, 4), "convolution_backward": convolutionBackward,
	"slow_conv2d_forward": convolution(5, 4, -1), "conv_depthwise2d": convolution(5, 4, 6), "convolution_overrideable": convolution(4, 3, 5), "mkldnn_linear": linear,
	"scaled_dot_product_flash_attention": attention(0, 4), "scaled_dot_product_efficient_attention": attention(0, 4), "scaled_dot_product_cudnn_attention": attention(0, 4),
	"scaled_dot_product_flash_attention_for_cpu": attention(0, 4), "flash_attention_forward": attention(0, 4), "efficient_attention_forward": attention(0, 4),
	"scaled_dot_product_flash_attention_backward": attention(1, 10), "scaled_dot_product_efficient_attention_backward": attention(1, 10),
	"scaled_dot_product_flash_attention_for_cpu_backward": attention(1, 10), "scaled_dot_product_cudnn_attention_backward": attention(1, 10),
	"max_pool2d_with_indices": pooling, "avg_pool2d": pooling, "adaptive_avg_pool2d": pooling, "embedding": rows, "index_select": rows,
	"sum": reduction, "mean": reduction, "mse_loss": reduction, "nll_loss_forward": reduction, "nll_loss2d_forward": reduction, "linalg_vector_norm": reduction, "argmax": reduction,
}

// pointwise are the operators that do a few operations for each element: how many.
var pointwise = map[string]float64{
	"copy": 0, "fill": 0, "zero": 0, "cat": 0, "add": 1, "sub": 1, "mul": 1, "div": 1, "neg": 1, "relu": 1, "clamp": 1, "clamp_min": 1, "threshold_backward": 1, "where": 1, "masked_fill": 1,
	"exp": 4, "log": 4, "pow": 4, "sqrt": 4, "rsqrt": 4, "reciprocal": 4, "tanh": 8, "tanh_backward": 3, "sigmoid": 5, "sigmoid_backward": 3, "gelu": 10, "gelu_backward": 15,
	"silu": 5, "silu_backward": 8, "native_dropout": 2, "native_dropout_backward": 2, "bernoulli": 1, "addcmul": 2, "addcdiv": 5, "lerp": 2,
	"softmax": 6, "softmax_backward_data": 4, "log_softmax": 6, "log_softmax_backward_data": 5, "nll_loss_backward": 1, "mse_loss_backward": 2,
	"native_batch_norm": 8, "cudnn_batch_norm": 8, "miopen_batch_norm": 8, "native_batch_norm_backward": 12, "cudnn_batch_norm_backward": 12, "miopen_batch_norm_backward": 12,
	"native_layer_norm": 8, "native_layer_norm_backward": 12, "native_group_norm": 8, "native_group_norm_backward": 12,
	"max_pool2d_with_indices_backward": 1, "avg_pool2d_backward": 1, "embedding_dense_backward": 1, "foreach_add": 1, "foreach_mul": 1, "fused_adam": 12, "fused_adamw": 12, "fused_sgd": 3,
}

// modelOf finds the model of an operator.
func modelOf(name string) (model, bool) {
	name, ok := strings.CutPrefix(name, "aten::")
	if !ok {
		return nil, false
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "_"), "_")
	if m, ok := models[name]; ok {
		return m, true
	}
	n, ok := pointwise[name]
	return each(n), ok
}

// hasWork reports whether the work of an operator is known.
func (e *event) hasWork() bool {
	_, ok := e.work()
	return ok
}

// work of an operator.
func (e *event) work() (w work, ok bool) {
	if e.args == nil || e.cat != operator {
		return work{}, false
	}
	m, ok := modelOf(e.name)
	if !ok {
		return work{}, false
	}
	return e.args.work(m)
}

// work by a model. All inputs are read and the output is written.
func (a *operands) work(m model) (w work, ok bool) {
	known := false
	for i := range a.inputs {
		in := &a.inputs[i]
		t, tensor := in.elementType()
		if !tensor || in.elements() == 0 {
			continue
		}
		if !known || w.typ.Arithmetic() != dag.Float32 && t.Arithmetic() == dag.Float32 {
			w.typ = t
		}
		known = true
		w.bytes += in.elements() * t.SizeBytes()
	}
	flops, out, ok := m(a)
	if !known || !ok {
		return work{}, false
	}
	w.flops = flops
	w.bytes += out * w.typ.SizeBytes()
	return w, true
}

func (a *operands) shape(i int) []int64 {
	if i < 0 || i >= len(a.inputs) {
		return nil
	}
	return a.inputs[i].shape()
}

// integers reads an input that is a list of numbers.
func (a *operands) integers(i int) (list []int64) {
	if i >= 0 && i < len(a.inputs) {
		_ = json.Unmarshal([]byte(a.inputs[i].value), &list)
	}
	return list
}

// matrices multiplies the inputs x and y: matrices, or as many of them each.
func matrices(x, y int) model {
	return func(a *operands) (float64, int64, bool) {
		l, r := a.shape(x), a.shape(y)
		if len(l) < 2 || len(r) == 0 {
			return 0, 0, false
		}
		columns := int64(1)
		if len(r) == len(l) {
			columns = r[len(r)-1]
		}
		inner := l[len(l)-1]
		out := product(l[:len(l)-1]) * columns
		return 2 * float64(out) * float64(inner), out, true
	}
}

// linear has x[…, in] and a weight [out, in].
func linear(a *operands) (float64, int64, bool) {
	x, w := a.shape(0), a.shape(1)
	if len(x) == 0 || len(w) != 2 {
		return 0, 0, false
	}
	out := product(x[:len(x)-1]) * w[0]
	return 2 * float64(out) * float64(w[1]), out, true
}

// convolution has an input [n, c, …], a weight [outputs, c/groups, …], and padding, stride and dilation as the inputs with these numbers.
func convolution(padding, stride, dilation int) model {
	return func(a *operands) (float64, int64, bool) {
		x, w := a.shape(0), a.shape(1)
		if len(x) < 3 || len(w) != len(x) {
			return 0, 0, false
		}
		p, s, d := a.integers(padding), a.integers(stride), a.integers(dilation)
		out := x[0] * w[0]
		for i := 2; i < len(x); i++ {
			at := func(list []int64, none int64) int64 {
				if i-2 < len(list) {
					return list[i-2]
				}
				return none
			}
			extent := (x[i]+2*at(p, 0)-at(d, 1)*(w[i]-1)-1)/max(1, at(s, 1)) + 1
			out *= max(0, min(extent, 1<<20))
		}
		return 2 * float64(out) * float64(product(w[1:])), out, true
	}
}

// convolutionBackward has the gradient of the output, the input and the weight, and makes the gradients of both.
func convolutionBackward(a *operands) (float64, int64, bool) {
	g, x, w := a.shape(0), a.shape(1), a.shape(2)
	if len(g) < 3 || len(w) != len(g) {
		return 0, 0, false
	}
	return 4 * float64(product(g)) * float64(product(w[1:])), product(x) + product(w), true
}

// attention has queries [batch, heads, t, d] as an input and keys [batch, heads, s, d] as the next. It takes times b·h·t·s·d operations.
func attention(queries int, times float64) model {
	return func(a *operands) (float64, int64, bool) {
		q, k := a.shape(queries), a.shape(queries+1)
		if len(q) != 4 || len(k) != 4 {
			return 0, 0, false
		}
		out := product(q)
		if times > 4 {
			out *= 3
		}
		return times * float64(product(q)) * float64(k[2]), out, true
	}
}

// each does some operations for each element of its largest input, and writes as many elements.
func each(flops float64) model {
	return func(a *operands) (float64, int64, bool) {
		largest := int64(0)
		for i := range a.inputs {
			if _, tensor := a.inputs[i].elementType(); tensor {
				largest = max(largest, a.inputs[i].elements())
			}
		}
		return flops * float64(largest), largest, largest > 0
	}
}

// reduction reads each element once, and writes few.
func reduction(a *operands) (float64, int64, bool) {
	n := product(a.shape(0))
	return float64(n), 0, n > 0 && len(a.shape(0)) > 0
}

// pooling reads each element once, and writes about a quarter.
func pooling(a *operands) (float64, int64, bool) {
	n := product(a.shape(0))
	return float64(n), n / 4, n > 0 && len(a.shape(0)) > 0
}

// rows takes rows of a table: the input 0 or 1 that is no matrix has their numbers.
func rows(a *operands) (float64, int64, bool) {
	table, numbers := a.shape(0), a.shape(1)
	if len(table) != 2 {
		return 0, 0, false
	}
	return 0, product(numbers) * table[1], true
}
