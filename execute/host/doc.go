// Package host is the system under the program: its allowed CPUs, pages of memory, threads that park
// and are woken, and the load of other processes.
//
// Read first: [CPUs], [Parker], [StartLoad]. Linux has all of it. On other systems threads are not pinned, a parker is a
// channel, and loads read zero (other.go).
package host
