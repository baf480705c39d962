// Package data reads the labelled samples on which networks are trained and tested.
//
// Read first: [Dataset], then [Open]. A data set is the embedded digits, synthetic samples, or files: IDX, CIFAR's
// binary batches, NumPy's arrays, or pictures with a table or folders of labels. [Shuffle] and [Batch] say which samples a step gets.
//
// # Invariants
//
//   - Equal options give equal samples in an equal order, whatever the number of processors that read.
//   - Labels are held in memory, and so are digits and arrays. Other samples stay where they are, and [Dataset.Read] reads some of them.
//   - A damaged file ends in one line that names it. It costs no more memory than some times its own size.
//
// # Units
//
// Samples are row-major and little-endian. Images are C×H×W. A pixel is its byte through Dataset.Divisor: 0 to 1.
//
// # Sources
//
// IDX is the format of MNIST (LeCun, Cortes, Burges), and the binary batches come from CIFAR (Krizhevsky, 2009).
// README.md names the origin of the digits.
//
// # Limits
//
// Of each data set all samples have one shape, and each has a class, or one at each of its positions. At most
// [npz.MaxBytes] are loaded.
package data
