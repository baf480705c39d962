package execute

import (
	"fmt"

	"dahl/kernels"
)

// CheckVariant reports why no operation can run a variant on this machine: the variant needs a
// library that is not installed. bind finds out whether a device has everything that a variant
// needs.
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
