package nn

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/naming"
)

// Optimizer changes the parameters by their gradients, like PyTorch's optimiser of the same name.
// Every step reads the learning rate and the step number from "step.hyper". The graph fixes the
// other numbers.
type Optimizer interface {
	// Name is the optimiser's name in Optimizers.
	Name() string
	// Rate is the learning rate.
	Rate() float64
	// Check reports numbers outside their range.
	Check() error

	operation() string
	params(dims int) dag.Params // of the operation on a parameter, by its number of dimensions
	states() []string           // the buffers it keeps per parameter
}

// OptimizerInfo is a line of the table of optimisers.
type OptimizerInfo struct {
	Name, Doc string
	New       func() Optimizer // with default numbers
}

// Optimizers is the table of optimisers.
func Optimizers() []OptimizerInfo {
	return []OptimizerInfo{
		{"sgd", "stochastic gradient descent, with momentum and Nesterov's step", func() Optimizer { return DefaultSGD() }},
		{"adam", "the method of Kingma and Ba", func() Optimizer { return DefaultAdam() }},
		{"adamw", "Adam with the weight decay beside the gradient, of Loshchilov and Hutter", func() Optimizer { return DefaultAdamW() }},
	}
}

// OptimizerByName finds a line of the table of optimisers.
func OptimizerByName(name string) (OptimizerInfo, error) {
	return naming.Find("optimizer", name, Optimizers(), func(o OptimizerInfo) string { return o.Name })
}

// SGD is stochastic gradient descent. With a momentum it keeps one velocity per weight.
type SGD struct {
	LearningRate float64
	Momentum     float64
	WeightDecay  float64
	Nesterov     bool
}

// DefaultSGD has a learning rate of 0.01 and nothing else.
func DefaultSGD() SGD { return SGD{LearningRate: 0.01} }

// Name implements [Optimizer].
func (SGD) Name() string { return "sgd" }

// Rate implements [Optimizer].
func (o SGD) Rate() float64 { return o.LearningRate }

// Check implements [Optimizer].
func (o SGD) Check() error {
	if o.Nesterov && o.Momentum == 0 {
		return fmt.Errorf("sgd: nesterov needs a momentum above 0")
	}
	return checkNumbers("sgd", []number{
		{"learning rate", o.LearningRate, math.MaxFloat64}, {"momentum", o.Momentum, 1}, {"weight decay", o.WeightDecay, math.MaxFloat64},
	})
}

func (SGD) operation() string { return "sgd" }

func (o SGD) states() []string {
	if o.Momentum == 0 {
		return nil
	}
	return []string{"v"}
}

func (o SGD) params(int) dag.Params {
	return dag.Params{{Name: "momentum", Value: o.Momentum}, Flag("nesterov", o.Nesterov), {Name: "weight_decay", Value: o.WeightDecay}}
}

// Adam is the method of Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015,
// with the weight decay added to the gradient. Decoupled makes it AdamW, of Loshchilov and
// Hutter, "Decoupled weight decay regularization", ICLR 2019: each step multiplies the weight by 1
// minus rate times decay, and the gradient has no part in that. Both keep two moments per weight.
//
// DecayDims makes two groups of parameters, as PyTorch's param_groups do: parameters of fewer dimensions have no weight decay.
// With 2 these are biases and the weights of normalisations, as in nanoGPT's configure_optimizers.
type Adam struct {
	LearningRate float64
	Beta1, Beta2 float64
	Eps          float64
	WeightDecay  float64
	DecayDims    int
	Decoupled    bool
}

// MostDecayDims is the most that [Adam.DecayDims] can be, the dimensions of a filter.
const MostDecayDims = 4

// DefaultAdam has the defaults of PyTorch's Adam.
func DefaultAdam() Adam { return Adam{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8} }

// DefaultAdamW has the defaults of PyTorch's AdamW.
func DefaultAdamW() Adam {
	o := DefaultAdam()
	o.WeightDecay, o.Decoupled = 1e-2, true
	return o
}

// Name implements [Optimizer].
func (o Adam) Name() string {
	if o.Decoupled {
		return "adamw"
	}
	return "adam"
}

// Rate implements [Optimizer].
func (o Adam) Rate() float64 { return o.LearningRate }

// Check implements [Optimizer].
func (o Adam) Check() error {
	if o.DecayDims < 0 || o.DecayDims > MostDecayDims {
		return fmt.Errorf("%s: weight decay of parameters of at least %d dimensions; want 0 to %d", o.Name(), o.DecayDims, MostDecayDims)
	}
	return checkNumbers(o.Name(), []number{
		{"learning rate", o.LearningRate, math.MaxFloat64}, {"beta1", o.Beta1, 1}, {"beta2", o.Beta2, 1},
		{"eps", o.Eps, math.MaxFloat64}, {"weight decay", o.WeightDecay, math.MaxFloat64},
	})
}

func (Adam) operation() string { return "adam" }

func (Adam) states() []string { return []string{"m", "v"} }

func (o Adam) params(dims int) dag.Params {
	if dims < o.DecayDims {
		o.WeightDecay = 0
	}
	return dag.Params{
		{Name: "beta1", Value: o.Beta1}, {Name: "beta2", Value: o.Beta2}, {Name: "eps", Value: o.Eps},
		{Name: "weight_decay", Value: o.WeightDecay}, Flag("decoupled", o.Decoupled),
	}
}

// Flag is a truth value as a parameter of an operation.
func Flag(name string, set bool) dag.Param {
	p := dag.Param{Name: name}
	if set {
		p.Value = 1
	}
	return p
}

type number struct {
	name  string
	value float64
	below float64
}

func checkNumbers(optimizer string, numbers []number) error {
	for _, n := range numbers {
		if !(n.value >= 0 && n.value < n.below) {
			return fmt.Errorf("%s: %s %g; want at least 0 and below %g", optimizer, n.name, n.value, n.below)
		}
	}
	return nil
}
