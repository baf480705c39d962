//go:build cuda

package cuda

import (
	"embed"
	"fmt"
)

//go:embed *.ptx
var compiled embed.FS

// PTX returns the text of a module for devices of a compute capability, 75 for 7.5: the
// one compiled for the highest capability that the device has. It ends with a zero byte,
// as cuModuleLoadData wants it.
func PTX(module string, capability int) ([]byte, error) {
	if capability < 75 {
		return nil, fmt.Errorf("CUDA kernels need compute capability 7.5, the device has %d.%d", capability/10, capability%10)
	}
	// make ptx leaves sm_80 out where it is the same.
	text, err := compiled.ReadFile(module + ".sm_80.ptx")
	if capability < 80 || err != nil {
		text, err = compiled.ReadFile(module + ".sm_75.ptx")
	}
	if err != nil {
		return nil, fmt.Errorf("no CUDA kernels %q for compute capability %d.%d: %w", module, capability/10, capability%10, err)
	}
	return append(text, 0), nil
}
