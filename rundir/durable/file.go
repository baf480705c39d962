package durable

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
)

// File is a file that is being written.
type File struct {
	path   string // in errors; for a temporary file the path of its final place
	f      *os.File
	len    int64
	failed error // of the first write that failed
}

// Len is how many bytes the file has.
func (f *File) Len() int64 { return f.len }

// Write adds to the end.
func (f *File) Write(p []byte) (n int, err error) {
	err = do(OpWrite, "writing", f.path, func() (err error) {
		n, err = f.f.Write(p)
		return err
	})
	if err != nil && n == 0 && Fault != nil {
		n, _ = f.f.Write(p[:len(p)/2])
	}
	f.len += int64(n)
	f.failed = cmp.Or(f.failed, err)
	return n, err
}

// Sync makes last what was written.
func (f *File) Sync() error { return do(OpSync, "writing", f.path, f.f.Sync) }

// Close ends the writing.
func (f *File) Close() error {
	err := do(OpClose, "writing", f.path, func() error { return nil })
	return cmp.Or(err, f.f.Close())
}

// cut makes the file as long as it was before, and what is written go to its end.
func (f *File) cut(lengthBytes int64) error {
	return do(OpTruncate, "cutting", f.path, func() error {
		info, err := f.f.Stat()
		if err != nil {
			return err
		}
		if info.Size() < lengthBytes {
			return fmt.Errorf("it has %d bytes, of which %d are to be kept", info.Size(), lengthBytes)
		}
		if err := f.f.Truncate(lengthBytes); err != nil {
			return err
		}
		f.len, err = f.f.Seek(lengthBytes, io.SeekStart)
		return err
	})
}

// bufferBytes is how much is written at once.
const bufferBytes = 256 << 10

// fill writes what a function gives, in few pieces.
func (f *File) fill(fill func(io.Writer) error) error {
	b := bufio.NewWriterSize(f, bufferBytes)
	if err := fill(b); err != nil && f.failed == nil {
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	return cmp.Or(f.failed, b.Flush())
}
