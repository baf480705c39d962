//go:build cuda

package execute

import (
	"errors"
	"fmt"

	"dahl/execute/cuda"
	"dahl/kernels"
)

// loadLibrary loads the library of a variant for CUDA devices.
func loadLibrary(name string) error {
	if name != kernels.CuBLAS {
		return fmt.Errorf("there is no library %q", name)
	}
	_, err := cuda.LoadBlas()
	return err
}

// bindProduct makes the product of a variant's library ready, nil if it has none, and gives
// each stream that may launch it a handle, since these allocate.
func (d *cudaDriver) bindProduct(v *kernels.Variant, call *kernels.DeviceCall) (*cuda.Product, error) {
	if v.Product == nil {
		return nil, nil
	}
	blas, err := cuda.LoadBlas()
	if err != nil {
		return nil, err
	}
	for i := range d.streams {
		s := &d.streams[i]
		if s.copies || s.blas != nil {
			continue
		}
		h, err := blas.NewHandle(s.Stream)
		if err != nil {
			return nil, err
		}
		s.blas = &h
	}
	from := v.Product(call)
	p := blas.Prepare(&from)
	return &p, nil
}

// free gives the memory of a call back.
func (c *cudaCall) free() {
	if c.product != nil {
		c.product.Free()
	}
	c.launches.Free()
}

// destroy destroys the stream, and its handle first.
func (s *cudaStream) destroy() (err error) {
	if s.blas != nil {
		err = s.blas.Destroy()
	}
	return errors.Join(err, s.Destroy())
}
