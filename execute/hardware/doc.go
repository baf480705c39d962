// Package hardware has what the machine under a program offers: its cores and GPUs as a platform, the drivers of its devices, and
// the kernels that run on them.
//
// Read first: [Detect], [Drivers], [Target].
package hardware
