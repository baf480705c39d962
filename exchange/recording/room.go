package recording

import (
	"fmt"
	"io"
	"math"

	"dahl/platform/quantity"
)

// Room is the memory in bytes that the contents of files may take, however short these are while they are compressed. Files that are read together share it. Nil has no end.
type Room struct{ all, left int64 }

// NewRoom is room for some bytes.
func NewRoom(bytes int64) *Room { return &Room{bytes, bytes} }

// Take takes room for what is kept.
func (r *Room) Take(bytes int64) error {
	if r != nil {
		r.left -= bytes
	}
	return r.check()
}

func (r *Room) check() error {
	if r != nil && r.left < 0 {
		return fmt.Errorf("what it describes takes more memory than the %s left; free some, or take one --step of a recording", quantity.ShortBytes(max(0, r.all)))
	}
	return nil
}

// ReadAll reads a file that is held as a whole, and takes some bytes of room for each of its bytes. It reads no more than there is room for.
func (r *Room) ReadAll(in io.Reader, each int64) ([]byte, error) {
	most := int64(math.MaxInt64) - 1
	if r != nil {
		most = max(0, r.left/each)
	}
	src, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil {
		err = r.Take(each * int64(len(src)))
	}
	return src, err
}

// The memory that parts of a recording take. Recordings of kernels alone took 1.2 kB for each, and one of 2.1 GB 0.4 kB for each event on the average.
const (
	eventBytes  = 1000
	nameBytes   = 100
	launchBytes = 16
	nsightBytes = 2 // for each of a file that is held as a whole
)

// maxEntry bounds the bytes of one entry of a file.
const maxEntry = 64 << 20

// entryReader reads a file with such entries.
type entryReader struct {
	in   io.Reader
	left int64 // of this entry
}

func newEntryReader(in io.Reader) *entryReader { return &entryReader{in, maxEntry} }

// next begins another entry.
func (r *entryReader) next() { r.left = maxEntry }

// Read implements [io.Reader].
func (r *entryReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("an entry of more than %d MiB; the file is damaged", maxEntry>>20)
	}
	n, err := r.in.Read(p)
	r.left -= int64(n)
	return n, err
}
