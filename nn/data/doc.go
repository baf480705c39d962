// Package data reads the labelled samples on which networks are trained and tested.
//
// Read first: [Dataset], then [Open]. A data set is the embedded digits, synthetic samples, a text that is made by a grammar, or files: IDX, CIFAR's
// binary batches, NumPy's arrays, pictures with a table or folders of labels, texts, or tokens. [Shuffle] and [Batch] say which samples a step gets.
//
// # Invariants
//
//   - Equal options give equal samples in an equal order, whatever the number of processors that read.
//   - Labels are held in memory, and so are digits and arrays. Parts of a text are read with
//     their labels, the next tokens. Other samples stay where they are, and
//     [Dataset.Read] reads some of them.
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
// Files of tokens and the split of a text are as in nanoGPT (Karpathy, 2022).
//
// # Limits
//
// Of each data set all samples have one shape, and each has a class, or one at each of its positions. At most
// [npz.MaxBytes] are loaded.
package data
