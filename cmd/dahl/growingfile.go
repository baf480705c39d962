package main

import (
	"time"

	"dahl/cmd/cli"
	"dahl/platform"
)

// growingFile is a platform file that is written while it grows.
type growingFile struct {
	path     string
	period   time.Duration      // the least time between two writes
	platform *platform.Platform // the last one given to save; nil: it has been written
	written  time.Time
	models   int // in the file; 0: it was not written
}

// savePeriod is that of a calibration: what an interruption may lose.
const savePeriod = time.Second

func (f *growingFile) save(p *platform.Platform) error {
	f.platform = p
	if time.Since(f.written) < f.period {
		return nil
	}
	return f.close()
}

// close writes what has not been written yet.
func (f *growingFile) close() error {
	if f.platform == nil {
		return nil
	}
	if err := cli.WriteTo(f.path, f.platform.WriteTOML); err != nil {
		return err
	}
	f.written, f.models, f.platform = time.Now(), len(f.platform.Models), nil
	return nil
}
