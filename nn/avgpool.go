package nn

// AvgPool is the average of square windows. A Stride of 0 means Size.
type AvgPool struct{ Size, Stride int }

// Kind implements [Layer].
func (AvgPool) Kind() string { return "avgpool" }

// Output implements [Layer].
func (p AvgPool) Output(in []int) ([]int, error) { return pooled(in, p.Size, p.Stride) }

// Params implements [Layer].
func (AvgPool) Params([]int) []Parameter { return nil }

func (p AvgPool) flops(_, out []int) float64 { return float64(elems(out) * p.Size * p.Size) }

func (p AvgPool) forward(l *lowerer, n *node) {
	n.params = poolParams(p.Size, p.Stride)
	l.output(n)
	n.eachTile(n.out.shape, func(t tile) {
		l.task(n, "forward", "avgpool", t, writes(n.out.value, t.box(n.out.shape)), reads(n.in.value, t.box(n.in.shape)))
	})
}

func (p AvgPool) backward(l *lowerer, n *node) {
	if n.in.grad == none {
		return
	}
	n.eachTile(n.in.shape, func(t tile) {
		l.task(n, "backward", "avgpool.dx", t, writes(n.in.grad, t.box(n.in.shape)), reads(n.out.grad, t.box(n.out.shape)))
	})
}
