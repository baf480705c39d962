// Package cli holds the parts that all programs of dahl share: exit codes, messages about wrong
// input, the printing of numbers, and checks of files.
//
// A command line that cannot be carried out is one line on standard error and exit code 2;
// [Run] makes it of an error that [InputErrorf] or [AsInput] marked. SIGHUP, SIGINT, SIGTERM and a
// closed standard output end a command early, with exit code 128 and the signal's number.
package cli
