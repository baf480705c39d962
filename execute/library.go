package execute

import (
	"fmt"

	"dahl/kernels"
)

// CheckVariant reports why no operation can run a variant on this machine: it is that of a
// library which is not here. Whether a device has what a variant needs is found where it is
// bound.
func CheckVariant(name string) error {
	for _, k := range kernels.Kernels() {
		if v, ok := k.Variant(name); ok && v.Library != "" {
			if err := loadLibrary(v.Library); err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			return nil
		}
	}
	return nil
}
