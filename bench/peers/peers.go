// Package peers carries the programs that `dahl-bench peers` runs beside dahl, so
// that the command needs nothing but an interpreter that has them.
package peers

import _ "embed"

// TorchWorker is a Python program that trains and evaluates a network in PyTorch
// at the requests on its standard input; its first lines say which.
//
//go:embed torch_worker.py
var TorchWorker []byte
