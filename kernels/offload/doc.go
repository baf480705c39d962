// Package offload describes what a device with a memory of its own is asked to do: launches of
// kernels, and calls of libraries in their place. The descriptions name modules, symbols, addresses
// and numbers. They know no driver: whoever drives devices for which the modules are compiled
// launches them.
package offload
