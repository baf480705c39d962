package offload

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Launch is one kernel launch, complete except for the stream. A call of an operation is a list of
// them, in order.
type Launch struct {
	Module string // the unit of compiled code, the name of its source without an ending
	Symbol string // the kernel in it

	Grid, Block [3]uint32 // blocks, and threads of a block
	SharedBytes uint32    // dynamic shared memory of a block

	// Params is the kernel's one parameter, a struct of plain fields by value.
	Params []byte
}

// Params returns the bytes of a struct that mirrors a kernel's parameter. Its fields are uint64
// (addresses), int64, int32, uint32, float32, float64, and arrays and structs of these. Go on
// 64-bit machines lays them out as C++ does on devices: each at a multiple of its own size. Params panics
// on other fields.
func Params[T any](p T) []byte {
	if err := plain(reflect.TypeFor[T]()); err != nil {
		panic("offload: parameter of a kernel: " + err.Error())
	}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p))...)
}

func plain(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Uint64, reflect.Int64, reflect.Int32, reflect.Uint32, reflect.Float32, reflect.Float64:
		return nil
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := plain(t.Field(i).Type); err != nil {
				return fmt.Errorf("%s.%s: %w", t, t.Field(i).Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("type %s has no fixed layout on the device", t)
}
