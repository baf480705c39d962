package files

var ModelOfONNX = modelOfONNX
