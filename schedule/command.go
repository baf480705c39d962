package schedule

import (
	"dahl/dag"
	"dahl/platform"
)

// CommandKind is a kind of request from the Engine to the world.
type CommandKind uint8

// The kinds of command.
const (
	RunTask     CommandKind = iota // run Instance on Worker now
	CopyRegion                     // start Copy now; report it with Engine.Copied
	EvictRegion                    // the contents of Eviction are no longer valid there
)

// Command is one request to the driver of the Engine.
type Command struct {
	Kind     CommandKind
	Instance dag.Instance      // the task to run, or the one that needs the copy
	Worker   platform.WorkerID // RunTask: where it runs
	Copy     CopyID            // CopyRegion: index into the Engine's copies
	Eviction int32             // EvictRegion: index into the Engine's evictions of this event
}

// CopyID names a copy of a running Engine.
type CopyID int32
