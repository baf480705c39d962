// Package calls says what a call of an operation is: without data ([Spec]), in the memory of this process ([Call]) and in
// a device's memory ([DeviceCall]), with views of its operands and its parameters. A [Variant] computes calls. Packages cpu
// and gpu compute calls by it, and know no operations; package kernels states these.
package calls
