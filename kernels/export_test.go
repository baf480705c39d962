package kernels

// For the tests in package kernels_test.
var Windows = windows

const NoMaximum = noMaximum
