//go:build !linux

package main

import "time"

var began = time.Now()

// threadTime is the time since the program began: it is right where no other program runs.
func threadTime() time.Duration { return time.Since(began) }
