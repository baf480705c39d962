package nn

// AvgPool is the average of square windows. A Stride of 0 means Size.
type AvgPool struct{ Size, Stride int }

// Kind implements [Layer].
func (AvgPool) Kind() string { return "avgpool" }

// Output implements [Layer].
func (p AvgPool) Output(in []int) ([]int, error) { return MaxPool(p).pooled(in) }

// Params implements [Layer].
func (AvgPool) Params([]int) []Parameter { return nil }

func (p AvgPool) flops(in, out []int) float64 { return MaxPool(p).flops(in, out) }

func (AvgPool) layout(string, string) string { return "" }

func (p AvgPool) forward(l *lowerer, n *node) {
	n.params = MaxPool(p).params()
	l.output(n)
	n.eachTile(&n.out, func(t tile) {
		l.task(n, phaseForward, "avgpool", n.params, t, writes(n.out.value, n.out.box(t)), reads(n.in.value, n.in.box(t)))
	})
}

func (p AvgPool) backward(l *lowerer, n *node) {
	if n.in.grad == none {
		return
	}
	n.eachTile(&n.in, func(t tile) {
		l.task(n, phaseBackward, "avgpool.dx", n.params, t, writes(n.in.grad, n.in.box(t)), reads(n.out.grad, n.out.box(t)))
	})
}
