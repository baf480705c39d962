//go:build !amd64

package simd

func (p *Product[T]) runVectors(Level) { p.runGo() }
