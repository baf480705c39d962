package peer

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"dahl/naming"
	"dahl/platform"
)

// Program is another program that trains networks.
type Program struct {
	Name, Doc string

	module string // of workers
	// pinned says that the program is kept on as many cores as it may have threads, since it has no
	// option for them.
	pinned bool
	modes  []string // of a network on a processor, training first
	onCPU  []Setting
	onGPU  []Setting
}

// The modes in which a worker runs a network.
const (
	ModeTrain  = "train"
	ModeInfer  = "infer"
	ModeFrozen = "frozen" // PyTorch's frozen and optimised TorchScript
)

// Setting is an environment in which a program is run.
type Setting struct {
	Name, Doc string

	env     []string
	oneBLAS bool   // keep BLAS to one thread where OpenMP has several
	compile string // mode of torch.compile; empty means eager
}

// The malloc thresholds keep freed memory in the process, so that a step does not
// fault its buffers in again.
var (
	noTrim = []string{"MALLOC_TRIM_THRESHOLD_=4000000000", "MALLOC_MMAP_THRESHOLD_=4000000000"}
	bound  = []string{"OMP_PROC_BIND=true"}
	avx512 = []string{"ATEN_CPU_CAPABILITY=avx512"}
	// avx2 keeps ATen, oneDNN and XLA from vectors of 512 bits. Processors without them do so by themselves;
	// GODEBUG=cpu.avx512f=off takes them from dahl, and so from the others.
	avx2 = []string{"ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2", "XLA_FLAGS=--xla_cpu_max_isa=AVX2"}
)

// Programs is the table of programs. A PyTorch whose OpenBLAS has threads of its own, apart from
// OpenMP, has more spinning threads than cores; then one thread of OpenBLAS may be faster,
// and is far steadier.
func Programs() []Program {
	return []Program{
		{Name: "pytorch", Doc: "PyTorch, eager", module: "torch_worker", modes: []string{ModeTrain, ModeInfer, ModeFrozen},
			onCPU: []Setting{
				{Name: "default", Doc: "as a user starts it"},
				{Name: "default one-blas", Doc: "default, with OPENBLAS_NUM_THREADS=1", oneBLAS: true},
				{Name: "tuned", Doc: "no-trim malloc, bound OpenMP threads", env: slices.Concat(noTrim, bound)},
				{Name: "tuned one-blas", Doc: "tuned, with OPENBLAS_NUM_THREADS=1", env: slices.Concat(noTrim, bound), oneBLAS: true},
				{Name: "avx512", Doc: "tuned, with ATEN_CPU_CAPABILITY=avx512", env: slices.Concat(noTrim, bound, avx512)},
				{Name: "avx512 one-blas", Doc: "avx512, with OPENBLAS_NUM_THREADS=1", env: slices.Concat(noTrim, bound, avx512), oneBLAS: true},
				{Name: "avx512 unbound one-blas", Doc: "the same without bound threads", env: slices.Concat(noTrim, avx512), oneBLAS: true},
			},
			onGPU: []Setting{{Name: "default", Doc: "cuDNN's algorithms by trial, the optimiser fused"}}},
		{Name: "pytorch-compile", Doc: "PyTorch, by torch.compile", module: "torch_worker", modes: []string{ModeTrain, ModeInfer},
			onCPU: []Setting{
				{Name: "default", Doc: "as a user starts it", compile: "default"},
				{Name: "tuned", Doc: "no-trim malloc, bound OpenMP threads", compile: "default", env: slices.Concat(noTrim, bound)},
				{Name: "cpp-wrapper", Doc: "tuned, with TORCHINDUCTOR_CPP_WRAPPER=1: the compiled kernels are called without Python", compile: "default", env: slices.Concat(noTrim, bound, []string{"TORCHINDUCTOR_CPP_WRAPPER=1"})},
			},
			onGPU: []Setting{
				{Name: "default", Doc: "as a user starts it", compile: "default"},
				{Name: "graphs", Doc: `torch.compile(mode="reduce-overhead"), which replays CUDA graphs`, compile: "reduce-overhead"},
			}},
		{Name: "jax", Doc: "JAX, a step as one compiled function", module: "jax_worker", pinned: true, modes: []string{ModeTrain, ModeInfer},
			onCPU: []Setting{
				{Name: "default", Doc: "as a user starts it, on as many cores as threads"},
				{Name: "tuned", Doc: "the same with no-trim malloc", env: noTrim},
			},
			onGPU: []Setting{{Name: "default", Doc: "as a user starts it"}}},
	}
}

func (p Program) String() string { return p.Name }

// ProgramByName finds a line of the table of programs.
func ProgramByName(name string) (Program, error) {
	return naming.Find("program", name, Programs(), func(p Program) string { return p.Name })
}

// Settings lists the settings that differ on a device with some number of threads.
func (p Program) Settings(device string, threads int) []Setting {
	all := p.onCPU
	if device == platform.CUDA {
		all = p.onGPU
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Setting) bool {
		return s.oneBLAS && threads == 1 || !cpu.X86.HasAVX512F && slices.Contains(s.env, avx512[0])
	})
}

// SettingNames lists the names of the settings on any device, and [Best].
func (p Program) SettingNames() []string {
	names := []string{Best}
	for _, s := range slices.Concat(p.onCPU, p.onGPU) {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// HasSetting reports whether a setting on any device has a name, alone or with a format.
func (p Program) HasSetting(name string) bool {
	name, format, named := strings.Cut(name, ": ")
	return slices.Contains(p.SettingNames(), name) && (!named || format == Contiguous || format == ChannelsLast)
}

// Modes lists the modes of a network on a device, training first.
func (p Program) Modes(device string) []string {
	if device == platform.CUDA {
		return p.modes[:2]
	}
	return p.modes
}

func (s Setting) String() string { return s.Name }

// Differs reports whether a setting is another one than that without a thread of BLAS, for a program of
// these versions: MKL has no threads but OpenMP's.
func (s Setting) Differs(v Versions) bool {
	return !s.oneBLAS || !strings.Contains(v.Config, "BLAS_INFO=mkl")
}

// deciding are the variables that decide how fast a program runs. They are not passed on, so that
// the line of a setting decides alone; OpenBLAS is not held back to another processor either.
var deciding = []string{"OPENBLAS_", "OMP_", "KMP_", "GOMP_", "MKL_", "MALLOC_", "ATEN_", "DNNL_", "ONEDNN_", "TORCH", "XLA_", "JAX_"}

// environment is the environment of a process with some number of threads, made of the one it would inherit.
func (p Program) environment(inherited []string, s Setting, device string, threads int) []string {
	env := slices.DeleteFunc(slices.Clone(inherited), func(v string) bool {
		return slices.ContainsFunc(deciding, func(prefix string) bool { return strings.HasPrefix(v, prefix) })
	})
	blas := threads
	if s.oneBLAS {
		blas = 1
	}
	// One process compiles, so that none is left when it is killed.
	env = append(env, fmt.Sprint("OMP_NUM_THREADS=", threads), fmt.Sprint("OPENBLAS_NUM_THREADS=", blas), "TORCHINDUCTOR_COMPILE_THREADS=1")
	if p.pinned && device == platform.CPU {
		env = append(env, "JAX_PLATFORMS=cpu")
	}
	if cpu.X86.HasAVX2 && !cpu.X86.HasAVX512F {
		env = append(env, avx2...)
	}
	return append(env, s.env...)
}

// The formats in which a worker keeps samples.
const (
	Contiguous   = "contiguous"
	ChannelsLast = "channels_last"
)
