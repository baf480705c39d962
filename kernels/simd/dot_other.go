//go:build !amd64

package simd

func (d *Dot[T]) runVectors(Level) { d.runGo() }
