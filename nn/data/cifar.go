package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CIFAR-10's binary version (A. Krizhevsky, "Learning multiple layers of features from tiny
// images", 2009) is records of a label and 3×32×32 pixels, without a header. Only the file's size
// can be checked.
const (
	cifarPixels  = 3 * 32 * 32
	cifarRecord  = 1 + cifarPixels
	cifarClasses = 10
)

const cifarTrainPrefix, cifarTestName = "data_batch_", "test_batch.bin"

func isCIFARTrain(name string) bool {
	return strings.HasPrefix(name, cifarTrainPrefix) && strings.HasSuffix(name, ".bin")
}

func fitsCIFAR(_ string, entries []os.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !e.IsDir() && (isCIFARTrain(e.Name()) || e.Name() == cifarTestName)
	})
}

// openCIFAR loads data_batch_1.bin, data_batch_2.bin, … or test_batch.bin, one
// after the other.
func openCIFAR(dir string, opt Options) (*Dataset, error) {
	paths, err := findCIFAR(dir, opt.Split)
	if err != nil {
		return nil, err
	}
	records := make([]int, len(paths))
	total := 0
	for i, path := range paths {
		if records[i], err = countCIFAR(path); err != nil {
			return nil, err
		}
		total += records[i]
	}
	lo, hi, err := opt.window(total)
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Name:  filepath.Base(filepath.Clean(dir)),
		Shape: []int{3, 32, 32}, Classes: cifarClasses, Divisor: 255,
		Source: fmt.Sprintf("%s and so on, %d files", paths[0], len(paths)),
	}
	if len(paths) == 1 {
		d.Source = paths[0]
	}
	if err := checkSize(hi-lo, d.Shape); err != nil {
		return nil, err
	}
	d.source = &cifarImages{paths, records, lo}
	first := 0 // index of the first record of the file
	for i, path := range paths {
		from, to := max(lo-first, 0), min(hi-first, records[i])
		if from < to {
			if err := d.appendLabels(path, from, to); err != nil {
				return nil, err
			}
		}
		first += records[i]
	}
	return d, nil
}

// findCIFAR returns the files of a split in order. A gap in the numbers means that a file was
// lost.
func findCIFAR(dir, split string) ([]string, error) {
	if split == Test {
		path := filepath.Join(dir, cifarTestName)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("no test split: %w; add %s (%v)", ErrNoSplit, cifarTestName, err)
		}
		return []string{path}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, e := range entries {
		if isCIFARTrain(e.Name()) {
			n++
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("no train split: %w; add %s1.bin", ErrNoSplit, cifarTrainPrefix)
	}
	var paths []string
	for i := range n {
		name := fmt.Sprintf("%s%d.bin", cifarTrainPrefix, i+1)
		if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name }) {
			return nil, fmt.Errorf("%d files %s*.bin, but no %s; add it", n, cifarTrainPrefix, name)
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, nil
}

func countCIFAR(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if info.Size() == 0 || info.Size()%cifarRecord != 0 {
		return 0, fmt.Errorf("%s: %d bytes are no whole number of CIFAR-10 records of %d; fetch the file again",
			path, info.Size(), cifarRecord)
	}
	return int(info.Size() / cifarRecord), nil
}

// appendLabels adds the labels of the records from … to-1 of a file.
func (d *Dataset) appendLabels(path string, from, to int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	r := bufio.NewReaderSize(io.NewSectionReader(f, int64(from)*cifarRecord, int64(to-from)*cifarRecord), 1<<18)
	labels, err := readRecords(r, to-from)
	if err != nil {
		return fmt.Errorf("%s: from record %d: %w", path, from, err)
	}
	d.Labels = append(d.Labels, labels...)
	return nil
}

// readRecords returns the labels of n records.
func readRecords(r *bufio.Reader, n int) (labels []int32, err error) {
	for i := range n {
		label, err := r.ReadByte()
		if err == nil {
			_, err = r.Discard(cifarPixels)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w; fetch the file again", i, err)
		}
		if label >= cifarClasses {
			return nil, fmt.Errorf("record %d has class %d; the largest is 9: this is no CIFAR-10 file", i, label)
		}
		labels = append(labels, int32(label))
	}
	return labels, nil
}

// cifarImages is the images in files of records, from one of all records on.
type cifarImages struct {
	paths   []string
	records []int // by file
	lo      int
}

// cifarFiles is the open files.
type cifarFiles struct {
	*cifarImages
	files []*os.File
}

func (c *cifarImages) open() (reader, error) {
	r := &cifarFiles{cifarImages: c}
	for i, path := range c.paths {
		f, err := openSized(path, int64(c.records[i])*cifarRecord)
		if err != nil {
			r.Close() // nothing was written
			return nil, err
		}
		r.files = append(r.files, f)
	}
	return r, nil
}

func (r *cifarFiles) Close() error {
	var all error
	for _, f := range r.files {
		all = errors.Join(all, f.Close())
	}
	return all
}

func (r *cifarFiles) readFrom(first int, dst []byte) error {
	record, file := r.lo+first, 0
	for ; len(dst) > 0; record++ {
		for record >= r.records[file] {
			record -= r.records[file]
			file++
		}
		if err := readAt(r.files[file], dst[:cifarPixels], int64(record)*cifarRecord+1); err != nil {
			return err
		}
		dst = dst[cifarPixels:]
	}
	return nil
}
