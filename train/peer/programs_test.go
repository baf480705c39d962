package peer

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"dahl/must"
	"dahl/nn/layers"
	"dahl/platform"
)

// The settings of a program have names of their own, and say what they are.
func TestPrograms(t *testing.T) {
	for _, p := range Programs() {
		for _, device := range []string{platform.CPU, platform.CUDA} {
			var names []string
			for _, s := range p.Settings(device, 2) {
				if s.Doc == "" || slices.Contains(names, s.Name) || s.Name == Best {
					t.Errorf("%s on %s: setting %q, %q", p, device, s.Name, s.Doc)
				}
				names = append(names, s.Name)
			}
			if len(names) == 0 || p.Doc == "" || p.Modes(device)[0] != ModeTrain {
				t.Errorf("%s on %s: settings %v, modes %v", p, device, names, p.Modes(device))
			}
		}
	}
	if _, err := ProgramByName("nope"); err == nil || !strings.Contains(err.Error(), "pytorch-compile") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// Variables that hold kernels back to another processor are not passed on; others are.
func TestEnvironment(t *testing.T) {
	p := must.Get(ProgramByName("pytorch"))(t)
	env := p.environment([]string{"OPENBLAS_CORETYPE=Haswell", "OPENBLAS_L2_SIZE=1", "HOME=/home/x", "OMP_NUM_THREADS=64"}, p.onCPU[1], platform.CPU, 3)
	for _, want := range []string{"HOME=/home/x", "OMP_NUM_THREADS=3", "OPENBLAS_NUM_THREADS=1"} {
		if !slices.Contains(env, want) {
			t.Errorf("%v lacks %s", env, want)
		}
	}
	for _, v := range []string{"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS=64"} {
		if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, v) }) {
			t.Errorf("%v has %s", env, v)
		}
	}
}

// Where dahl has no vectors of 512 bits, by its processor or by GODEBUG, the others have none.
func TestVectorsOfOthers(t *testing.T) {
	defer func(has bool) { cpu.X86.HasAVX512F = has }(cpu.X86.HasAVX512F)
	defer func(has bool) { cpu.X86.HasAVX2 = has }(cpu.X86.HasAVX2)
	p := must.Get(ProgramByName("pytorch"))(t)
	for _, wide := range []bool{false, true} {
		cpu.X86.HasAVX2, cpu.X86.HasAVX512F = true, wide
		env := p.environment([]string{"ONEDNN_MAX_CPU_ISA=SSE41"}, p.onCPU[0], platform.CPU, 2)
		isAVX512 := func(s Setting) bool { return strings.HasPrefix(s.Name, "avx512") }
		if slices.ContainsFunc(p.Settings(platform.CPU, 2), isAVX512) != wide || slices.Contains(env, "ONEDNN_MAX_CPU_ISA=AVX2") == wide ||
			slices.Contains(env, "ONEDNN_MAX_CPU_ISA=SSE41") {
			t.Errorf("AVX-512 %t: settings %v, environment %v", wide, p.Settings(platform.CPU, 2), env)
		}
	}
}

// Every kind of layer has a twin in every program, but for dropout, which no two programs draw alike.
func TestLayersHaveTwins(t *testing.T) {
	for _, worker := range []string{"torch_worker", "jax_worker"} {
		src := must.Get(fs.ReadFile(programs, "workers/"+worker+".py"))(t)
		for _, l := range layers.All() {
			if l.Kind == dropout {
				continue
			}
			if !strings.Contains(string(src), "\n    \""+l.Kind+"\": ") {
				t.Errorf("%s.py has no line for layer kind %s in LAYERS", worker, l.Kind)
			}
		}
	}
}
