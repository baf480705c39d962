package data

import (
	"dahl/nn/npz"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// maxInflation is how many bytes deflate makes of one at most.
const maxInflation = 1032

// idxImages is the images lo to hi of the n in an IDX file. Images of a compressed file are read
// from a temporary file in its directory, so that any order costs the same as in an uncompressed
// one.
type idxImages struct {
	path      string
	n, lo, hi int

	size      int64 // of the file
	header    int64
	imageSize int
	zipped    bool

	mu    sync.Mutex
	plain *os.File // the images of a compressed file, once they are needed; it has no name any more
}

// readShape reads the header and compares what it promises with the size of the file.
func (x *idxImages) readShape() (shape []int, err error) {
	f, err := os.Open(x.path)
	if err != nil {
		return shape, err
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return shape, err
	}
	r, zipped, err := gunzip(f)
	if err != nil {
		return shape, err
	}
	if shape, x.header, err = readIDXShape(r, x.n); err != nil {
		return shape, err
	}
	if err := checkSize(x.hi-x.lo, shape); err != nil {
		return shape, err
	}
	x.size, x.zipped, x.imageSize = info.Size(), zipped, elements(shape)
	if zipped {
		if bytes := int64(x.imageSize) * int64(x.hi-x.lo); bytes/maxInflation > x.size {
			return shape, fmt.Errorf("its %d bytes cannot hold the %d that its header promises; fetch the file again", x.size, bytes)
		}
		return shape, nil
	}
	return shape, x.checkSize()
}

// checkSize refuses an uncompressed file that ends before the images do, or after them.
func (x *idxImages) checkSize() error {
	size := int64(x.imageSize)
	have, want := (x.size-x.header)-int64(x.lo)*size, int64(x.hi-x.lo)*size
	switch {
	case have < 0:
		return endsBefore(-have)
	case have < want:
		return npz.Truncated(have, want)
	case have > want && x.hi == x.n:
		return npz.ErrMore
	}
	return nil
}

func endsBefore(missing int64) error {
	return fmt.Errorf("truncated: ends %d bytes before the first image asked for; fetch the file again", missing)
}

func (x *idxImages) open() (reader, error) {
	if x.zipped {
		if err := x.unzip(); err != nil {
			return nil, err
		}
		return &sampleFile{f: x.plain, size: x.imageSize, keep: true}, nil
	}
	f, err := openSized(x.path, x.size)
	if err != nil {
		return nil, err
	}
	return &sampleFile{f: f, offset: x.header + int64(x.lo)*int64(x.imageSize), size: x.imageSize}, nil
}

// fill reads the images in one go.
func (x *idxImages) fill(dst []byte) error {
	if x.zipped {
		return x.inflate(func(r io.Reader) error {
			n, err := io.ReadFull(r, dst)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return npz.Truncated(int64(n), int64(len(dst)))
			}
			return err
		})
	}
	r, err := x.open()
	if err != nil {
		return err
	}
	defer r.Close() // nothing was written
	return r.readFrom(0, dst)
}

// inflate calls read with the images of a compressed file.
func (x *idxImages) inflate(read func(io.Reader) error) error {
	return readIDXFile(x.path, func(r io.Reader) error {
		skip := x.header + int64(x.lo)*int64(x.imageSize)
		got, err := io.CopyN(io.Discard, r, skip)
		if errors.Is(err, io.EOF) {
			return endsBefore(skip - got)
		}
		if err == nil {
			err = read(r)
		}
		if err == nil && x.hi == x.n {
			err = npz.AtEnd(r)
		}
		return err
	})
}

// unzip writes the images of a compressed file into one in its directory. The file loses its name at
// once, so that nothing of it is left when the program ends, however it does.
func (x *idxImages) unzip() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.plain != nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(x.path), ".dahl-"+filepath.Base(x.path)+"-*")
	if err == nil {
		if err = os.Remove(f.Name()); err == nil {
			want := int64(x.hi-x.lo) * int64(x.imageSize)
			err = x.inflate(func(r io.Reader) error {
				got, err := io.CopyN(f, r, want)
				if errors.Is(err, io.EOF) {
					return npz.Truncated(got, want)
				}
				return err
			})
		}
		if err != nil {
			f.Close() // it has no name, and what is in it is not needed
		}
	}
	if err != nil {
		return fmt.Errorf("decompressing %s beside itself, since its images are too large for the memory: %w; decompress it with gunzip where there is room", x.path, err)
	}
	x.plain = f
	return nil
}
