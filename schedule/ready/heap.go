package ready

// Heap is a binary heap with the first element on top. No two elements are equal, so that the order of Pop does not
// depend on the order of Push.
type Heap[T interface{ Before(T) bool }] []T

// Push adds an element.
func (h *Heap[T]) Push(x T) {
	*h = append(*h, x)
	a := *h
	for i := len(a) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a[i].Before(a[parent]) {
			return
		}
		a[i], a[parent] = a[parent], a[i]
		i = parent
	}
}

// Pop removes the first element.
func (h *Heap[T]) Pop() T {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < last && a[child+1].Before(a[child]) {
			child++
		}
		if child >= last || !a[child].Before(a[i]) {
			break
		}
		a[i], a[child] = a[child], a[i]
		i = child
	}
	*h = a
	return top
}
