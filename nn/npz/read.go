package npz

import (
	"errors"
	"fmt"
	"io"
)

// MaxBytes bounds what is read into memory at once, so that a damaged or hostile header is refused rather than allocated.
const MaxBytes = 16 << 30

// ErrMore reports bytes behind the last element.
var ErrMore = errors.New("holds more bytes than its header says; fetch the file again")

// Truncated is the error of a file that ends early.
func Truncated(have, want int64) error {
	return fmt.Errorf("truncated: %d bytes where %d should be; fetch the file again", have, want)
}

// ReadBytes reads exactly n bytes. A header with a false promise costs some times the memory of
// the file at most, and most of that is never touched.
func ReadBytes(r io.Reader, n int64) ([]byte, error) {
	const first, growth = 1 << 16, 8
	var buf []byte
	for int64(len(buf)) < n {
		more := make([]byte, min(n, max(first, growth*int64(len(buf)))))
		had := copy(more, buf)
		got, err := io.ReadFull(r, more[had:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, Truncated(int64(had+got), n)
		}
		if err != nil {
			return nil, err
		}
		buf = more
	}
	return buf, nil
}

// AtEnd reports an error if the reader holds more bytes.
func AtEnd(r io.Reader) error {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	return ErrMore
}
