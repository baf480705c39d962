//go:build cuda

package cuda

// #include "dnn.h"
import "C"

import (
	"errors"
	"fmt"

	"dahl/kernels/offload"
)

// dnnFunctions are the names of the library's functions in use, in the order of struct dnn.
var dnnFunctions = []string{
	"cudnnCreate", "cudnnDestroy", "cudnnSetStream", "cudnnGetErrorString",
	"cudnnCreateTensorDescriptor", "cudnnSetTensor4dDescriptorEx", "cudnnDestroyTensorDescriptor",
	"cudnnCreateFilterDescriptor", "cudnnSetFilter4dDescriptor", "cudnnDestroyFilterDescriptor",
	"cudnnCreateConvolutionDescriptor", "cudnnSetConvolution2dDescriptor", "cudnnSetConvolutionMathType", "cudnnDestroyConvolutionDescriptor",
	"cudnnCreateActivationDescriptor", "cudnnSetActivationDescriptor", "cudnnDestroyActivationDescriptor",
	"cudnnGetConvolutionForwardAlgorithm_v7", "cudnnGetConvolutionBackwardDataAlgorithm_v7", "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
	"cudnnGetConvolutionForwardWorkspaceSize", "cudnnGetConvolutionBackwardDataWorkspaceSize", "cudnnGetConvolutionBackwardFilterWorkspaceSize",
	"cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter",
	"cudnnConvolutionBiasActivationForward", "cudnnAddTensor", "cudnnActivationForward",
}

// dnn is cuDNN.
type dnn struct {
	name  string // of the file
	table *C.struct_dnn
}

// dnnHandle is cuDNN (NVIDIA, cuDNN API reference) on one stream. Its convolutions have the same
// bits in every run of one version on one kind of device: cuDNN's list for device and call gives
// the algorithm when a call is prepared, among those that cuDNN calls deterministic. A
// convolution under capture becomes part of the graph.
type dnnHandle struct {
	dnn
	handle C.uintptr_t
}

// newDnnHandle allocates device memory.
func newDnnHandle(l *Library, s Stream) (LibraryHandle, error) {
	d := dnn{l.Name, (*C.struct_dnn)(l.table)}
	h := &dnnHandle{dnn: d}
	if err := d.fail("cudnnCreate", C.dnn_create(d.table, &h.handle)); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	if err := d.fail("cudnnSetStream", C.dnn_set_stream(d.table, h.handle, handle(s.s))); err != nil {
		return nil, errors.Join(err, h.Destroy())
	}
	return h, nil
}

func (h *dnnHandle) Destroy() error {
	return h.fail("cudnnDestroy", C.dnn_destroy(h.table, h.handle))
}

// dnnConvolution is a prepared convolution, in memory of C.
type dnnConvolution struct {
	table *C.struct_dnn
	c     *C.struct_convolution
}

// Prepare prepares a convolution.
func (h *dnnHandle) Prepare(call offload.LibraryCall) (LibraryCall, error) {
	from := call.(offload.Convolution)
	c := (*C.struct_convolution)(C.calloc(1, C.sizeof_struct_convolution))
	c.kind, c.window, c.pad, c.stride = C.int(from.Kind), C.int(from.Window), C.int(from.Pad), C.int(from.Stride)
	for i := range 4 {
		c.x_extent[i], c.x_stride[i] = C.int(from.X.Extent[i]), C.int(from.X.Stride[i])
		c.y_extent[i], c.y_stride[i] = C.int(from.Y.Extent[i]), C.int(from.Y.Stride[i])
	}
	c.x, c.y, c.w, c.bias = C.CUdeviceptr(from.X.Addr), C.CUdeviceptr(from.Y.Addr), C.CUdeviceptr(from.W), C.CUdeviceptr(from.Bias)
	c.work, c.work_bytes = C.CUdeviceptr(from.Work), C.size_t(from.WorkBytes)
	for flag, set := range map[*C.int]bool{
		&c.tf32: from.TF32, &c.relu: from.ReLU, &c.add: from.Add,
	} {
		if set {
			*flag = 1
		}
	}
	ready := &dnnConvolution{h.table, c}
	if err := h.callError(C.dnn_prepare(h.table, c, h.handle)); err != nil {
		ready.Free()
		return nil, err
	}
	return ready, nil
}

func (c *dnnConvolution) Free() { C.dnn_free(c.table, c.c) }

// Issue issues a convolution to the handle's stream.
func (h *dnnHandle) Issue(c LibraryCall) error {
	return h.callError(C.dnn_issue(h.table, c.(*dnnConvolution).c, h.handle))
}

// noAlgorithm is the number of a failure without a status.
const noAlgorithm = 3

// dnnCalls are the calls that may fail, by number.
var dnnCalls = [...]string{
	"cudnn descriptors", "cudnnSetConvolutionMathType", "cudnnGetConvolution…Algorithm_v7", noAlgorithm: "",
	"cudnn convolution", "cudnnConvolutionBiasActivationForward", "cudnnAddTensor", "cudnnActivationForward",
}

// callError makes an error of the result of our C functions.
func (d *dnn) callError(r C.int) error {
	switch {
	case r == 0:
		return nil
	case r == noAlgorithm:
		return fmt.Errorf("%s: no deterministic algorithm fits its workspace: %w", d.name, offload.ErrRefused)
	}
	return d.fail(dnnCalls[r%16], r/16)
}

// fail makes an error of a status, as blasError does.
func (d *dnn) fail(call string, status C.int) error {
	if status == 0 {
		return nil
	}
	name := C.GoString(C.dnn_error(d.table, status))
	switch {
	case C.refused(status) != 0:
		return fmt.Errorf("%s: %s: %w", call, name, offload.ErrRefused)
	case C.out_of_memory(status) != 0:
		return outOfMemory(call, name)
	}
	return fmt.Errorf("%s: %s", call, name)
}
