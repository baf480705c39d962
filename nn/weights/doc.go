// Package weights reads and writes files of weights in the formats of others.
//
// Read first: [Formats], the table. A format is a line there, and a file of its own.
//
// # Invariants
//
//   - Equal arrays give equal bytes.
//   - A damaged file ends in an error that names it, and costs no more memory than some times its own size.
//   - An array that a check refuses is refused by its header, before its numbers are read.
//
// # Sources
//
// safetensors is the format of Hugging Face (https://github.com/huggingface/safetensors, "Format"), and package npz has NumPy's.
//
// # Limits
//
// Of safetensors the types F64, F32, F16, BF16, I64, I32 and U8 are read. F16 and BF16 become float32, which holds all their numbers.
package weights
