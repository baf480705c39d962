package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Level is a set of vector instructions.
type Level uint8

// The levels, each wider than the one before.
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

// widest is the level of this machine. AVX2 code uses fused multiply-add too; AVX-512
// code uses the foundation, byte and word, doubleword and quadword, and vector
// length extensions, which every processor since Skylake-X and Zen 4 has together.
var widest = detect()

func detect() Level {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasFMA:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return AVX2
	}
	return Go
}

// bytes is the size of a vector register.
func (l Level) bytes() int { return 16 << l }

// maskWords are eight words with the sign bit and eight without it.
var maskWords = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// mask selects the first n elements of a vector, 1 or more: a bit for each with
// AVX-512, with AVX2 the address of 32 bytes that have sign bits there.
func (l Level) mask(n, size int) uintptr {
	if l == AVX512 {
		return 1<<n - 1
	}
	return uintptr(unsafe.Pointer(&maskWords[8-n*size/4]))
}

// forms is the assembly of a loop: by level, for float32 and float64. The generators list all of them in forms_amd64.go.
type forms[A any] [AVX512 + 1][2]func(args *A)

// call runs the form for elements of a size. The compiler cannot know that functions of a table
// keep no pointer, and would move the arguments to the heap. So it does not see where this pointer
// comes from.
func (f *forms[A]) call(l Level, size int, args *A) {
	address := uintptr(unsafe.Pointer(args))
	f[l][size/8](*(**A)(unsafe.Pointer(&address)))
}
