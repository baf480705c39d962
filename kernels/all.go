package kernels

// All is the table of operations.
var All = []Kernel{}
