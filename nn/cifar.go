package nn

import (
	"fmt"
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
func openCIFAR(dir string, opt DataOptions) (*Dataset, error) {
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
		Shape: [3]int{3, 32, 32}, Classes: cifarClasses, Divisor: 255,
		Source: fmt.Sprintf("%s and so on, %d files", paths[0], len(paths)),
	}
	if len(paths) == 1 {
		d.Source = paths[0]
	}
	if _, err := imageBytes(hi-lo, d.Shape); err != nil {
		return nil, err
	}
	first := 0 // index of the first record of the file
	for i, path := range paths {
		from, to := max(lo-first, 0), min(hi-first, records[i])
		if from < to {
			if err := d.appendCIFAR(path, from, to); err != nil {
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

// appendCIFAR adds the records from … to-1 of a file.
func (d *Dataset) appendCIFAR(path string, from, to int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(int64(from)*cifarRecord, 0); err != nil {
		return err
	}
	raw, err := readBytes(f, int64(to-from)*cifarRecord)
	if err == nil {
		err = d.appendRecords(raw)
	}
	if err != nil {
		return fmt.Errorf("%s: from record %d: %w", path, from, err)
	}
	return nil
}

func (d *Dataset) appendRecords(raw []byte) error {
	for i := 0; len(raw) >= cifarRecord; i++ {
		if raw[0] >= cifarClasses {
			return fmt.Errorf("record %d has class %d; the largest is 9: this is no CIFAR-10 file", i, raw[0])
		}
		d.Labels = append(d.Labels, int32(raw[0]))
		d.Images = append(d.Images, raw[1:cifarRecord]...)
		raw = raw[cifarRecord:]
	}
	if len(raw) > 0 {
		return fmt.Errorf("%d bytes after the last whole record of %d", len(raw), cifarRecord)
	}
	return nil
}
