//go:build cuda

package execute

import (
	"errors"
	"fmt"

	"dahl/execute/cuda"
)

// GPUs lists the GPUs that the CUDA driver shows. It fails where there is none, and says why.
func GPUs() ([]GPU, error) {
	n, err := cuda.Count()
	if err != nil {
		return nil, fmt.Errorf("no GPU can be found: %w", err)
	}
	if n == 0 {
		return nil, errors.New("no GPU can be found: the CUDA driver shows none")
	}
	gpus := make([]GPU, n)
	for i := range gpus {
		if gpus[i], err = cuda.PropertiesOf(i); err != nil {
			return nil, fmt.Errorf("properties of GPU %d: %w", i, err)
		}
	}
	return gpus, nil
}
