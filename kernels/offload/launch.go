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
// 64-bit machines lays them out as C++ does on devices: each at a multiple of its own size. Bytes between
// fields are zero, so that equal parameters have equal bytes. Params panics on other fields.
func Params[T any](p T) []byte {
	bytes := make([]byte, unsafe.Sizeof(p))
	if err := copyFields(bytes, unsafe.Slice((*byte)(unsafe.Pointer(&p)), len(bytes)), reflect.TypeFor[T]()); err != nil {
		panic("offload: parameter of a kernel: " + err.Error())
	}
	return bytes
}

// copyFields copies a value of a type, without the bytes between its fields.
func copyFields(to, from []byte, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Uint64, reflect.Int64, reflect.Int32, reflect.Uint32, reflect.Float32, reflect.Float64:
		copy(to[:t.Size()], from)
		return nil
	case reflect.Array:
		for i := range t.Len() {
			at := uintptr(i) * t.Elem().Size()
			if err := copyFields(to[at:], from[at:], t.Elem()); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if err := copyFields(to[f.Offset:], from[f.Offset:], f.Type); err != nil {
				return fmt.Errorf("%s.%s: %w", t, f.Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("type %s has no fixed layout on the device", t)
}
