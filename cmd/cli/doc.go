// Package cli is what dahl's programs share as commands: how they end, how they name what
// the user got wrong, how they print numbers, and how they write a file whole.
//
// A command line that cannot be carried out is one line on standard error and exit code 2;
// [Run] makes it of an error that [InputErrorf] or [AsInput] marked. SIGHUP, SIGINT, SIGTERM and a
// closed standard output end a command early, with exit code 128 and the signal's number.
package cli
