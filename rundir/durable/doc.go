// Package durable writes files that are whole or not there, and makes them survive a power cut as
// reported.
//
// [Write] makes one file: written under a temporary name in the same directory, synced, then
// renamed. [Dir] is the same and more inside one directory, which no name and no link leads out of.
// Every operation on the file system passes one place, [Fault], where a test makes the n-th of them
// fail or cuts a program off.
package durable
