//go:build !amd64

package simd

func (p *Pooling[T]) maxVectors(Level) { p.maxGo() }

func (p *Pooling[T]) spreadVectors(Level) { p.spreadGo() }
