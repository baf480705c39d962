//go:build cuda

package execute

import (
	"errors"
	"fmt"

	"dahl/execute/cuda"
)

// cudaGPUs lists the GPUs that the CUDA driver shows. It fails where there is none, and says why.
func cudaGPUs() ([]GPU, error) {
	n, err := cuda.Count()
	if err != nil {
		return nil, fmt.Errorf("no GPU can be found: %w", err)
	}
	if n == 0 {
		return nil, errors.New("no GPU can be found: the CUDA driver shows none")
	}
	gpus := make([]GPU, n)
	for i := range gpus {
		p, err := cuda.PropertiesOf(i)
		if err != nil {
			return nil, fmt.Errorf("properties of GPU %d: %w", i, err)
		}
		float32s, float64s := p.FlopsPerSec()
		gpus[i] = GPU{Name: p.Name, PCIBus: p.PCIBus, Capability: p.Capability, MemoryBytes: p.MemoryBytes, L2Bytes: p.L2Bytes,
			Float32FlopsPerSec: float32s, Float64FlopsPerSec: float64s, BytesPerSec: p.BytesPerSec()}
	}
	return gpus, nil
}
