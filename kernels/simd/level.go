package simd

// Level is a set of vector instructions.
type Level uint8

// The levels, each wider than the one before. A loop without assembly at a level runs the widest
// one below.
const (
	Go Level = iota // no vector instructions
	AVX2
	AVX512
)

// Levels are all levels in ascending order, whatever this machine has.
func Levels() []Level { return []Level{Go, AVX2, AVX512} }

// String is the name that kernels' variants have.
func (l Level) String() string { return [...]string{"go", "avx2", "avx512"}[l] }

// Supported reports whether this machine can run the level.
func (l Level) Supported() bool { return l <= widest }

// Widest is the widest level that this machine can run.
func Widest() Level { return widest }

// Float is the arithmetic types.
type Float interface{ float32 | float64 }
