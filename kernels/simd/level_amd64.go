package simd

import "golang.org/x/sys/cpu"

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
