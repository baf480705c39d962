package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"dahl/parallel"
	"dahl/rundir/durable"
)

// A source is where the samples of a data set are until they are read.
type source interface {
	open() (reader, error)
}

// A reader reads any samples at any time, for several goroutines at once.
type reader interface {
	// readFrom fills dst with the samples that follow each other from one on.
	readFrom(first int, dst []byte) error
	io.Closer
}

// A filler reads all samples in their order faster than any in any order.
type filler interface {
	fill(dst []byte) error
}

// SampleBytes is the size of one sample.
func (d *Dataset) SampleBytes() int { return elements(d.Shape) * int(d.Type.SizeBytes()) }

// Bytes is the size of all samples.
func (d *Dataset) Bytes() int64 { return int64(d.Len()) * int64(d.SampleBytes()) }

// UnzippedBytes is the size of the temporary file that Read needs for a compressed file. Zero
// means that it needs none.
func (d *Dataset) UnzippedBytes() int64 {
	if x, ok := d.source.(*idxImages); ok && x.zipped {
		return d.Bytes()
	}
	return 0
}

// Read fills dst with the samples of some samples, one after the other. What follows each other in
// the data set is read at once. Several goroutines may call it.
func (d *Dataset) Read(dst []byte, samples []int32) error {
	size := d.SampleBytes()
	if len(dst) != len(samples)*size {
		panic(fmt.Sprintf("data: %d bytes for %d samples of %d", len(dst), len(samples), size))
	}
	from := d.source
	if d.Samples != nil {
		from = held{d.Samples, size}
	}
	r, err := from.open()
	if err != nil {
		return err
	}
	defer r.Close() // nothing was written
	return inParts(len(samples), func(lo, hi int) error {
		for lo < hi {
			end := lo + 1
			for end < hi && samples[end] == samples[end-1]+1 {
				end++
			}
			if err := r.readFrom(int(samples[lo]), dst[lo*size:end*size]); err != nil {
				return err
			}
			lo = end
		}
		return nil
	})
}

// ReadLabels fills dst with the labels of some samples, one after the other, one for each position.
func (d *Dataset) ReadLabels(dst, samples []int32) error {
	n := elements(d.Positions)
	if len(dst) != len(samples)*n {
		panic(fmt.Sprintf("data: %d labels for %d samples of %d", len(dst), len(samples), n))
	}
	if w, ok := d.source.(*windows); ok {
		return w.readLabels(dst, samples)
	}
	for i, sample := range samples {
		copy(dst[i*n:], d.Labels[int(sample)*n:int(sample+1)*n])
	}
	return nil
}

// Ignored is the number of labels of some samples that are -1.
func (d *Dataset) Ignored(samples []int32) (n int) {
	if w, ok := d.source.(*windows); ok {
		return w.ignored(samples)
	}
	each := elements(d.Positions)
	for _, sample := range samples {
		for _, label := range d.Labels[int(sample)*each:][:each] {
			if label < 0 {
				n++
			}
		}
	}
	return n
}

// inParts calls do for equal parts of 0 to n-1 at once, as many as there are processors. It
// returns the error of the first part that has one.
func inParts(n int, do func(lo, hi int) error) error {
	parts := min(n, runtime.GOMAXPROCS(0))
	return parallel.Do(context.Background(), parts, func(p int) error { return do(n*p/parts, n*(p+1)/parts) })
}

// Fill fills dst with all samples.
func (d *Dataset) Fill(dst []byte) error {
	if f, ok := d.source.(filler); ok && d.Samples == nil {
		return f.fill(dst)
	}
	all := make([]int32, d.Len())
	InOrder(all)
	return d.Read(dst, all)
}

// Keep makes a copy of all samples the data set's own.
func (d *Dataset) Keep(samples []byte) { d.Samples, d.source = samples, nil }

// writeChunkBytes is about how much WriteTo reads at a time.
const writeChunkBytes = 4 << 20

// WriteTo writes all samples in their order, a few at a time.
func (d *Dataset) WriteTo(w io.Writer) (written int64, err error) {
	size := d.SampleBytes()
	samples := make([]int32, min(d.Len(), max(1, writeChunkBytes/size)))
	chunk := make([]byte, len(samples)*size)
	for first := 0; first < d.Len(); first += len(samples) {
		samples = samples[:min(len(samples), d.Len()-first)]
		for i := range samples {
			samples[i] = int32(first + i)
		}
		chunk = chunk[:len(samples)*size]
		if err := d.Read(chunk, samples); err != nil {
			return written, err
		}
		n, err := w.Write(chunk)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// held is samples in memory.
type held struct {
	samples []byte
	size    int // of one
}

func (h held) open() (reader, error) { return h, nil }
func (h held) Close() error          { return nil }

func (h held) readFrom(first int, dst []byte) error {
	copy(dst, h.samples[first*h.size:])
	return nil
}

// readWhole reads a regular file of at most some bytes.
func readWhole(path string, most int64) ([]byte, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s: %d bytes; at most %d are read: is it the file that was meant?", path, info.Size(), most)
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, fmt.Errorf("%s: %w; leave the file alone while it is read", path, err)
	}
	return text, nil
}

// openSized opens a file that must have its former size.
func openSized(path string, size int64) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%s: %d bytes, and %d when the data were opened; leave the data alone while they are trained on", path, info.Size(), size)
	}
	if err != nil {
		f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// sampleFile is a file of samples, one after the other from an offset on.
type sampleFile struct {
	f      *os.File
	offset int64
	size   int // of one sample
	keep   bool
}

func (r *sampleFile) Close() error {
	if r.keep {
		return nil
	}
	return r.f.Close()
}

func (r *sampleFile) readFrom(first int, dst []byte) error {
	return readAt(r.f, dst, r.offset+int64(first)*int64(r.size))
}

// readAt fills dst from an offset of a file on.
func readAt(f *os.File, dst []byte, offset int64) error {
	_, err := f.ReadAt(dst, offset)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: truncated while it was read; leave the data alone while they are trained on", f.Name())
	}
	return err
}
