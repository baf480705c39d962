package data

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"dahl/nn/npz"
	"dahl/rundir/durable"
)

// The ends of the names of files of tokens.
const (
	binarySuffix = ".bin" // numbers of 16 bits, little-endian, as nanoGPT's prepare.py writes them
	arraySuffix  = ".npy" // an array of one dimension, of whole numbers
)

// widths are the types of arrays of tokens, with the bytes of an element.
var widths = map[string]int{"|u1": 1, "<u2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8}

// tokenFile is a file of tokens of equal bytes, from an offset on.
type tokenFile struct {
	path          string
	bytes, offset int64
	width         int
	n             int64 // tokens
}

// openTokenFile finds out how many tokens of some bytes a file has behind an offset.
func openTokenFile(path string, offset int64, width int) (*tokenFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &tokenFile{path: path, bytes: info.Size(), offset: offset, width: width, n: (info.Size() - offset) / int64(width)}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case f.n*int64(width) != info.Size()-offset:
		return nil, fmt.Errorf("%s: %d bytes are no whole number of tokens of %d; fetch the file again", path, info.Size()-offset, width)
	}
	return f, nil
}

// openNumbers finds out what a file of tokens is, by its ending.
func openNumbers(path string) (*tokenFile, error) {
	if filepath.Ext(path) == binarySuffix {
		return openTokenFile(path, 0, 2)
	}
	in, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	h, err := npz.ReadHeader(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	width, known := widths[h.Descr]
	if !known || len(h.Shape) != 1 {
		return nil, fmt.Errorf("%s: shape %v of type '%.40s'; want tokens in one dimension: save it with astype(numpy.uint16).ravel()", path, h.Shape, h.Descr)
	}
	f, err := openTokenFile(path, h.Bytes, width)
	if err == nil && f.n != int64(h.Shape[0]) {
		err = fmt.Errorf("%s: %d tokens, and %d by its header; fetch the file again", path, f.n, h.Shape[0])
	}
	return f, err
}

func (f *tokenFile) openTokens() (tokenReader, error) {
	in, err := openSized(f.path, f.bytes)
	return &tokenFileReader{in, f}, err
}

type tokenFileReader struct {
	*os.File
	of *tokenFile
}

func (r *tokenFileReader) readTokens(dst []int32, from int64) error {
	f := r.of
	raw := make([]byte, len(dst)*f.width)
	if err := readAt(r.File, raw, f.offset+from*int64(f.width)); err != nil {
		return err
	}
	for i := range dst {
		var wide [8]byte
		copy(wide[:], raw[i*f.width:(i+1)*f.width])
		token := binary.LittleEndian.Uint64(wide[:])
		if token > math.MaxInt32 {
			return fmt.Errorf("%s: token %d is %d; want 0 to %d", f.path, from+int64(i), int64(token), math.MaxInt32)
		}
		dst[i] = int32(token)
	}
	return nil
}

// scanTokens is how many tokens are looked at in one piece.
const scanTokens = 1 << 18

// size is one more than the greatest token, for which the file is read once.
func (f *tokenFile) size() (int, error) {
	if f.n == 0 {
		return 0, nil
	}
	r, err := f.openTokens()
	if err != nil {
		return 0, err
	}
	defer r.Close() // nothing was written
	pieces := int((f.n + scanTokens - 1) / scanTokens)
	most := make([]int32, pieces)
	err = inParts(pieces, func(lo, hi int) error {
		dst := make([]int32, scanTokens)
		for p := lo; p < hi; p++ {
			from := int64(p) * scanTokens
			dst = dst[:min(scanTokens, f.n-from)]
			if err := r.readTokens(dst, from); err != nil {
				return err
			}
			most[p] = slices.Max(dst)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int(slices.Max(most)) + 1, nil
}

// openTokensOf opens a file of tokens, whose last tenth is for the test.
func openTokensOf(path string, opt Options) (*Dataset, error) {
	f, err := openNumbers(path)
	if err != nil {
		return nil, err
	}
	lo, hi := partOf(f.n, opt.Split)
	return ofTokens(path, f, lo, hi, opt, f)
}

// ofTokens is the data set of some tokens of a file. Tokens of all files of the set count for its classes.
func ofTokens(path string, f *tokenFile, lo, hi int64, opt Options, all ...*tokenFile) (*Dataset, error) {
	classes := 0
	for _, one := range all {
		n, err := one.size()
		if err != nil {
			return nil, err
		}
		classes = max(classes, n)
	}
	w, err := newWindows(f, lo, hi, opt)
	if err != nil {
		return nil, err
	}
	d := w.dataset(classes)
	d.Name, d.Source = filepath.Base(path), path
	return d, nil
}

// tokenSplits are the names of nanoGPT's files, without their endings.
var tokenSplits = map[string]string{Train: "train", Test: "val"}

// tokenFileOf is the file of a split in a directory; "" means none.
func tokenFileOf(dir, split string) string {
	for _, ending := range []string{binarySuffix, arraySuffix} {
		path := filepath.Join(dir, tokenSplits[split]+ending)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func fitsTokens(dir string, _ []os.DirEntry) bool { return tokenFileOf(dir, Train) != "" }

// openTokensDir opens the tokens of a split in a directory, as nanoGPT's prepare.py writes them.
func openTokensDir(dir string, opt Options) (*Dataset, error) {
	var all []*tokenFile
	var of *tokenFile
	for _, split := range []string{Train, Test} {
		path := tokenFileOf(dir, split)
		if path == "" {
			continue
		}
		f, err := openNumbers(path)
		if err != nil {
			return nil, err
		}
		if all = append(all, f); split == opt.Split {
			of = f
		}
	}
	if of == nil {
		return nil, fmt.Errorf("no test split: %w; add %s%s", ErrNoSplit, tokenSplits[Test], binarySuffix)
	}
	return ofTokens(dir, of, 0, of.n, opt, all...)
}
