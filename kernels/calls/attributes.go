package calls

// Attributes are the prologues and epilogues of an operation: what it does to data on their way into its sums, and to the
// sums before they reach memory. An operation with attributes has a name of its own in graphs, platform files and plans,
// see kernels.Written.
type Attributes uint16

const (
	// Mapped: the input of a dense layer is a map with channels last.
	Mapped Attributes = 1 << iota
	// Norm: a batch normalisation and its ReLU precede the sums.
	Norm
	// Pool: a ReLU and a max-pooling follow the sums.
	Pool
	// ReLU: a ReLU follows the sums. The gradient of an input stops where that input is not positive.
	ReLU
	// Moments: the moments of the results are taken.
	Moments
	// SGD: the gradient of weights is the step of sgd on these.
	SGD
	// NoBias: the layer of that step has no bias.
	NoBias
	// Function: a function of every element follows the sums. The gradient of an input is also multiplied by the slope of the function there.
	Function
	// Kept: the sums before that function are results, too.
	Kept
	// Sum: the data are the sum of two operands, which is a result, too. To the gradient of an input another operand is added.
	Sum
)

// Has reports whether all of some attributes are among a.
func (a Attributes) Has(some Attributes) bool { return a&some == some }

// AfterHyper is where the bias and the velocity of the weights are, if the call has them. Zero means no bias.
func AfterHyper(hyper int, with Attributes) (b, vw int) {
	if with.Has(NoBias) {
		return 0, hyper + 1
	}
	return hyper + 1, hyper + 2
}

// SgdParamNames are the parameters of sgd. They are also the last ones of operations that compute
// the gradient and its step.
var SgdParamNames = []string{"momentum", "nesterov", "weight_decay"}

// SettingOf is the number on which the function of a call depends; 0 where there is none.
func SettingOf(params []float64) float64 {
	if len(params) == 0 {
		return 0
	}
	return params[0]
}

// DropLeast is the least word of an element that stays.
func DropLeast(p float64) uint64 { return uint64(p * (1 << 32)) }

// EachPlace visits the places of the pixels of a channel of a sample in two maps of equal extents.
func (m *Map4[T]) EachPlace(other *Map4[T], n, c int, visit func(at, in int)) {
	for h := range m.Extent[2] {
		for w := range m.Extent[3] {
			visit(m.At(n, c, h, w), other.At(n, c, h, w))
		}
	}
}
