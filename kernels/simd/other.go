//go:build !amd64

package simd

// Without assembly every loop runs in plain Go.

const widest = Go

func (p *Product[T]) runVectors(Level)                       { p.runGo() }
func (d *Dot[T]) runVectors(Level)                           { d.runGo() }
func (p *Pooling[T]) maxVectors(Level)                       { p.eachWindow(p.maximum) }
func (p *Pooling[T]) spreadVectors(Level)                    { p.eachWindow(p.spread) }
func (t *Transpose[T]) runVectors(Level) bool                { return false }
func (p *Pixels[T]) runVectors(Level) bool                   { return false }
func (a *channelArgs) run(channelLoop, Level, int, int) bool { return false }
func (a *runArgs) run(loop, Level, int, int) bool            { return false }
func (s *Softmax[T]) run(Level, []T, []T, bool)              {}
func addRowsVectors[T Float](Level, []T, []T, int, int) bool { return false }
func (w *Winograd) runVectors(_ Level, t winogradTransform) {
	w.runGo(&winogradLines[t], t == winogradResult)
}
func peakVectors(Level, int, int) float64 { panic("simd: no vector instructions") }

// SoftmaxRows is the number of rows of a block, 0 where there is no assembly.
func SoftmaxRows[T Float](Level) int { return 0 }
