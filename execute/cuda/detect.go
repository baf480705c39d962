//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"dahl/execute/driver"
)

// gpus lists the GPUs that the CUDA driver shows. It fails where there is none, and says why.
func gpus() ([]driver.GPU, error) {
	n, err := Count()
	if err != nil {
		return nil, fmt.Errorf("no GPU can be found: %w", err)
	}
	if n == 0 {
		return nil, errors.New("no GPU can be found: the CUDA driver shows none")
	}
	all := make([]driver.GPU, n)
	for i := range all {
		p, err := PropertiesOf(i)
		if err != nil {
			return nil, fmt.Errorf("properties of GPU %d: %w", i, err)
		}
		float32s, float64s := p.FlopsPerSec()
		all[i] = driver.GPU{Name: p.Name, PCIBus: p.PCIBus, Capability: p.Capability, MemoryBytes: p.MemoryBytes, L2Bytes: p.L2Bytes,
			Float32FlopsPerSec: float32s, Float64FlopsPerSec: float64s, BytesPerSec: p.BytesPerSec()}
	}
	return all, nil
}
