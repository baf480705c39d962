package kernels

// Host operations are done by the caller of execute, through a callback.

var feed = Kernel{
	Op: "feed", Doc: "the caller writes the batch's indices and {learning rate, step from 1}",
	Operands: []Operand{
		writes("index", Index, "n"),
		optional(writes("hyper", Scalar, "2")),
	},
	Host: true,
}

var feedImages = Kernel{
	Op: "feed.images", Doc: "the caller writes the batch itself, and what feed does",
	Operands: []Operand{
		writes("index", Index, "n"),
		writes("images", Pixel, "n ..."),
		writes("labels", Index, "n"),
		optional(writes("hyper", Scalar, "2")),
	},
	Host: true,
}

var fetch = Kernel{
	Op: "fetch", Doc: "the caller reads the mean loss and the number of correct predictions",
	Operands: []Operand{
		reads("loss", Real, "1"),
		reads("correct", Index, "1"),
	},
	Host: true,
}
