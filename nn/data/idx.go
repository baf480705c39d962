package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dahl/naming"
	"dahl/nn/npz"
)

// IDX is the format of MNIST (LeCun, Cortes, Burges, yann.lecun.com/exdb/mnist):
// two zero bytes, the element type (8: unsigned byte), the rank, the extents as
// big-endian 32-bit numbers, then the elements in row-major order.

// idxPrefixes are the beginnings of the file names of a split.
var idxPrefixes = map[string][]string{Train: {"train", "train10k"}, Test: {"t10k", "test"}}

// idxNames lists the possible names of a file, most usual first.
func idxNames(prefix, kind string) []string {
	ranks := []int{3, 4}
	if kind == "labels" {
		ranks = []int{1}
	}
	var names []string
	for _, rank := range ranks {
		for _, sep := range []string{"-", "."} {
			name := fmt.Sprintf("%s-%s%sidx%d-ubyte", prefix, kind, sep, rank)
			names = append(names, name, name+".gz")
		}
	}
	return names
}

func fitsIDX(_ string, entries []os.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		name := strings.TrimSuffix(e.Name(), ".gz")
		return !e.IsDir() && strings.HasSuffix(name, "-ubyte") && strings.Contains(name, "idx")
	})
}

// openIDX loads the pair of files of a split.
func openIDX(dir string, opt Options) (*Dataset, error) {
	imagePath, labelPath, err := findIDX(dir, opt.Split)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Name: filepath.Base(filepath.Clean(dir)), Divisor: 255, Source: imagePath}
	var all []byte
	err = readIDXFile(labelPath, func(r io.Reader) error {
		all, err = readIDXLabels(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	lo, hi, err := opt.window(len(all))
	if err != nil {
		return nil, err
	}
	d.Classes = int(slices.Max(all)) + 1
	d.Labels = make([]int32, 0, hi-lo)
	for _, label := range all[lo:hi] {
		d.Labels = append(d.Labels, int32(label))
	}
	file := &idxImages{path: imagePath, n: len(all), lo: lo, hi: hi}
	if d.Shape, err = file.readShape(); err != nil {
		return nil, fmt.Errorf("%s: %w", imagePath, err)
	}
	d.source = file
	return d, nil
}

// findIDX returns the paths of the split's images and labels.
func findIDX(dir, split string) (imagePath, labelPath string, err error) {
	first := func(prefix, kind string) string {
		for _, name := range idxNames(prefix, kind) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
		return ""
	}
	prefixes := idxPrefixes[split]
	for _, prefix := range prefixes {
		images, labels := first(prefix, "images"), first(prefix, "labels")
		switch {
		case images == "" && labels == "":
			continue
		case images == "":
			return "", "", fmt.Errorf("%s is there, but not the images; add %s-images-idx3-ubyte(.gz)", labels, prefix)
		case labels == "":
			return "", "", fmt.Errorf("%s is there, but not the labels; add %s-labels-idx1-ubyte(.gz)", images, prefix)
		case imagePath != "":
			return "", "", fmt.Errorf("both %s and %s could be the %s split; keep one of them in the directory", imagePath, images, split)
		}
		imagePath, labelPath = images, labels
	}
	if imagePath == "" {
		return "", "", fmt.Errorf("no %s split: %w; add %s-images-idx3-ubyte and %s-labels-idx1-ubyte, plain or .gz",
			split, ErrNoSplit, prefixes[0], prefixes[0])
	}
	return imagePath, labelPath, nil
}

// readIDXFile calls read with the file's bytes, decompressed if they are gzip.
func readIDXFile(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, _, err := gunzip(f)
	if err == nil {
		err = read(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// gunzip tells gzip from plain bytes by the first two bytes, not by the file's name.
func gunzip(r io.Reader) (plain io.Reader, zipped bool, err error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, false, nil
	}
	plain, err = gzip.NewReader(buffered)
	return plain, true, err
}

// readIDXHeader returns the extents. Their number must be one of the ranks.
func readIDXHeader(r io.Reader, what string, ranks ...int) ([]int, error) {
	magic, err := npz.ReadBytes(r, 4)
	if err != nil {
		return nil, err
	}
	if magic[0] != 0 || magic[1] != 0 {
		return nil, fmt.Errorf("begins with % x, not with two zero bytes: this is no IDX file", magic[:2])
	}
	if magic[2] != 8 {
		return nil, fmt.Errorf("element type 0x%02x; only unsigned bytes (0x08) are read", magic[2])
	}
	if !slices.Contains(ranks, int(magic[3])) {
		return nil, fmt.Errorf("rank %d; %s have rank %s", magic[3], what, naming.JoinInts(ranks, " or "))
	}
	raw, err := npz.ReadBytes(r, 4*int64(magic[3]))
	if err != nil {
		return nil, err
	}
	extents := make([]int, magic[3])
	for i := range extents {
		extents[i] = int(binary.BigEndian.Uint32(raw[4*i:]))
		if extents[i] < 1 || extents[i] > 1<<31-1 {
			return nil, fmt.Errorf("extent %d of the header is %d; it must be at least 1 and below 2^31", i, extents[i])
		}
	}
	return extents, nil
}

// readIDXLabels returns all labels.
func readIDXLabels(r io.Reader) ([]byte, error) {
	extents, err := readIDXHeader(r, "labels", 1)
	if err != nil {
		return nil, err
	}
	if extents[0] > MaxSamples { // all are read, and a compressed file may have far fewer bytes
		return nil, fmt.Errorf("%d labels; at most %d are taken: write fewer into the file", extents[0], MaxSamples)
	}
	labels, err := npz.ReadBytes(r, int64(extents[0]))
	if err != nil {
		return nil, err
	}
	return labels, npz.AtEnd(r)
}

// readIDXShape reads the header of a file that must hold n images. It returns their shape, and the
// size of the header.
func readIDXShape(r io.Reader, n int) (shape []int, header int64, err error) {
	extents, err := readIDXHeader(r, "images", 3, 4)
	if err != nil {
		return shape, 0, err
	}
	if extents[0] != n {
		return shape, 0, fmt.Errorf("holds %d images, but there are %d labels; fetch both files again", extents[0], n)
	}
	shape = extents[1:]
	if len(extents) == 3 {
		shape = []int{1, extents[1], extents[2]}
	}
	return shape, int64(4 + 4*len(extents)), nil
}
