package kernels

// All is the table of operations. Nothing changes it.
var All = []Kernel{
	feed, fetch,
	load, loadNHWC, loadLabels,
	toNHWC, toNCHW, toHWIO, toHWOI, toOIHW,
	conv2d, conv2dDx, conv2dDw,
	conv2dNHWC, conv2dNHWCDx, conv2dNHWCDw, conv2dNHWCPool, conv2dNHWCPoolDw,
	conv2dNHWCDwSGD, conv2dNHWCPoolDwSGD,
	dense, denseDx, denseDw, denseReLU, denseDxReLU, denseDwSGD, denseNHWCDwSGD,
	relu, reluDx,
	maxpool, maxpoolDx, maxpoolNHWC, maxpoolNHWCDx,
	avgpool, avgpoolDx,
	softmaxXent, softmaxXentEval,
	rowmax, expSub, rowsum, xent, softmaxXentDx,
	mean, count, add,
	sgd, adam,
}
