package ready

// Heap is a binary heap with the first element on top. No two elements are equal, so that the order of Pop does not
// depend on the order of Push.
type Heap[T interface{ Before(T) bool }] []T

// Push adds an element.
func (h *Heap[T]) Push(x T) {
	*h = append(*h, x)
	a := *h
	i := len(a) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.Before(a[parent]) {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = x
}

// Pop removes the first element.
func (h *Heap[T]) Pop() T {
	a := *h
	last := len(a) - 1
	top, x := a[0], a[last]
	a = a[:last]
	*h = a
	if last == 0 {
		return top
	}
	i := 0 // where x goes
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && a[child+1].Before(a[child]) {
			child++
		}
		if !a[child].Before(x) {
			break
		}
		a[i] = a[child]
		i = child
	}
	a[i] = x
	return top
}
