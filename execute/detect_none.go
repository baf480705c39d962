//go:build !cuda

package execute

import "errors"

// GPUs lists the GPUs that the CUDA driver shows. It fails where there is none, and says
// why.
func GPUs() ([]GPU, error) {
	return nil, errors.New("no GPU can be found: this dahl was built without CUDA; build it with make cuda")
}
