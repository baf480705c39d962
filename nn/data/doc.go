// Package data reads the labelled samples on which networks are trained and tested.
//
// Read first: [Dataset], then [Open]. A data set is the embedded digits, synthetic samples, or files: IDX, CIFAR's
// binary batches, or pictures that a table or their folders label. [Shuffle] and [Batch] say which samples a step gets.
//
// # Invariants
//
//   - Equal options give equal samples in an equal order, whatever the number of processors that read.
//   - Labels are held in memory. With Options.Later samples stay where they are, and [Dataset.Read] reads some of them.
//   - A damaged file ends in one line that names it. It costs no more memory than some times its own size.
//
// # Units
//
// Samples are N×C×H×W, row-major, a byte for each number. A pixel is its byte through Dataset.Divisor: 0 to 1.
//
// # Sources
//
// IDX is the format of MNIST (LeCun, Cortes, Burges), and the binary batches are those of CIFAR (Krizhevsky, 2009).
// README.md names the origin of the digits.
//
// # Limits
//
// Of each data set all samples have one shape, and each has one class. At most [MaxBytes] are loaded.
package data
