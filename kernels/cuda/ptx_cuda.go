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
	for i := len(capabilities) - 1; i >= 0; i-- {
		if c := capabilities[i]; c <= capability {
			text, err := compiled.ReadFile(fmt.Sprintf("%s.sm_%d.ptx", module, c))
			if err != nil {
				return nil, fmt.Errorf("no CUDA kernels %q for capability %d.%d: %w", module, c/10, c%10, err)
			}
			return append(text, 0), nil
		}
	}
	return nil, fmt.Errorf("CUDA kernels need compute capability %d.%d, the device has %d.%d",
		capabilities[0]/10, capabilities[0]%10, capability/10, capability%10)
}

// capabilities are those that make ptx compiles for, ascending.
var capabilities = []int{75, 80}
