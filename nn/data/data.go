package data

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn/npz"
)

// Dataset is labelled samples of one shape and type.
type Dataset struct {
	Name    string
	Type    dag.DType // Uint8 of pixels, Float32 or Float64 of numbers, Int32 of tokens
	Samples []byte    // N×Shape, row-major, little-endian; nil means that Read reads them
	Shape   []int     // of a sample; images are C×H×W
	Labels  []int32   // N×Positions, each in [0, Classes), or -1 where a loss ignores it; nil means that ReadLabels reads them
	Classes int
	Divisor float64  // of a pixel, whose value is byte/Divisor, from 0 to 1
	Source  string   // origin of the bytes, for the manifest
	Notes   []string // advice for whoever trains on them
	HeldOut string   // which samples are held out for the test where the data have no test set of their own; empty where they have one, or none

	// Positions is the shape of the labels of one sample. Empty means one label.
	Positions []int

	Vocabulary *Vocabulary // of a text; nil means that the samples are none

	source source // where Samples is nil
}

// Len is the number of samples.
func (d *Dataset) Len() int {
	if w, ok := d.source.(*windows); ok {
		return w.n
	}
	return len(d.Labels) / elements(d.Positions)
}

// OnlyRead reports whether samples and labels are read for each step, and never held: overlapping ones would need
// far more memory than their text.
func (d *Dataset) OnlyRead() bool {
	_, overlap := d.source.(*windows)
	return overlap
}

func elements(shape []int) int {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return n
}

// Options selects a part of a data set.
type Options struct {
	Split  string // "train" or "test"; "" means "train"
	Limit  int    // the most samples; zero means all
	Offset int    // number of samples to skip

	// Positions is the length of samples that are parts of a text or of tokens one after the other.
	Positions int
	// MaskToken stands for tokens of a sample that are hidden. Labels are then the hidden tokens. 0 means that the label of a position is the next token.
	MaskToken int
	// Vocabulary of a text. A kind alone stands for the text's own; a trained network has one with characters.
	Vocabulary Vocabulary

	// Of pictures: the rows and columns to which they are scaled, 0 for none, and whether all have three channels.
	Resize [2]int
	Colour bool
}

// The splits.
const (
	Train = "train"
	Test  = "test"
)

// MaxSamples bounds the samples of a data set, whose labels are always in memory.
const MaxSamples = 1 << 26

// Open opens a data set. Samples of large sets stay where they are until [Dataset.Read]. The name has one of
// these forms:
//
//	digits                        optical digits 1×8×8, embedded in the program
//	synthetic[:SHAPE[:N[:K[:P]]]] N random samples of K learnable classes, such as synthetic:3x32x32:1000:10,
//	                              with a label for each of the positions P
//	tokens[:T[:N[:V]]]            N random sequences of T tokens of a vocabulary of V, each with the next one as its label
//	text[:N]                      a text of N characters, written by the program by a grammar
//	FILE.txt                      a text, of which the last tenth is for the test
//	FILE.bin, FILE.npy            tokens: numbers of 16 bits, or an array of one dimension; the last tenth is for the test
//	DIR                           train.bin and val.bin of tokens (or .npy), as nanoGPT writes them
//	FILE.npz                      arrays x_train, y_train, x_test and y_test, or x and y, of any shape
//	DIR                           IDX files as MNIST names them, plain or gzip
//	DIR                           CIFAR-10, binary version
//	DIR                           train/CLASS/*.png and test/CLASS/*.png (or JPEG),
//	                              or CLASS/*.png with every fifth for the test
//	DIR                           train/images/*.png with train/labels.csv and the same of
//	                              test, or images and labels.csv (or .txt), of lines
//	                              "file,label", with every fifth for the test
//
// Pictures below directories of a class belong to the class, too. Grey pictures among others get three equal channels.
// What is transparent lies over black, and a JPEG's orientation (EXIF) is not looked at.
//
// The names in a directory tell its format. A directory that fits none or several of the formats
// is an error.
func Open(name string, opt Options) (*Dataset, error) {
	d, err := open(name, opt)
	if err != nil {
		return nil, fmt.Errorf("data %s: %w", name, err)
	}
	return d, nil
}

// Names are the data that need no directory.
func Names() []string { return []string{"digits", synthetic, "text", "tokens"} }

func open(name string, opt Options) (*Dataset, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	kind, spec, _ := strings.Cut(name, ":")
	if v := opt.Vocabulary.Kind; v != "" && kind != "text" && filepath.Ext(name) != textSuffix {
		return nil, fmt.Errorf("--vocabulary %s is for a text, FILE%s or text; these are no characters", v, textSuffix)
	}
	if slices.Contains(Names(), kind) {
		if err := opt.checkResize(false, kind); err != nil {
			return nil, err
		}
	}
	switch kind {
	case "digits":
		if spec != "" {
			return nil, errors.New("digits takes no shape; write digits")
		}
		return openDigits(opt)
	case "tokens":
		k, err := ParseTokens(spec)
		if err != nil {
			return nil, err
		}
		return k.open(opt)
	case synthetic:
		s, err := ParseSynthetic(spec)
		if err != nil {
			return nil, err
		}
		return s.open(opt)
	case "text":
		return openWritten(spec, opt)
	}
	if open, known := fileFormats[filepath.Ext(name)]; known {
		if err := opt.checkResize(false, name); err != nil {
			return nil, err
		}
		return open(name, opt)
	}
	return openDir(name, opt)
}

// fileFormats are the ways to keep a data set in one file, by the ending of its name.
var fileFormats = map[string]func(path string, opt Options) (*Dataset, error){
	arraysSuffix: openArrays, textSuffix: openText, binarySuffix: openTokensOf, arraySuffix: openTokensOf,
}

// Endings are the endings of the names of files of data.
func Endings() []string { return slices.Sorted(maps.Keys(fileFormats)) }

// A dirFormat is a way to keep a data set in a directory.
type dirFormat struct {
	name string
	fits func(dir string, entries []os.DirEntry) bool
	open func(dir string, opt Options) (*Dataset, error)

	pictures bool // of any size
}

var dirFormats = [...]dirFormat{
	{"IDX files", fitsIDX, openIDX, false},
	{"CIFAR-10 binary files", fitsCIFAR, openCIFAR, false},
	{"directories of images", fitsImages, openImages, true},
	{"images with a labels file", fitsLabelled, openLabelled, true},
	{"tokens", fitsTokens, openTokensDir, false},
}

func openDir(dir string, opt Options) (*Dataset, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("no such directory; write digits, synthetic, text, tokens, or the path of a directory of data or of a file (" + naming.OneOf(Endings()) + ")" + naming.DidYouMean(dir, Names()))
	}
	if err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return nil, errors.New("this is a file; give the directory that holds it, or a file that ends in " + naming.OneOf(Endings()))
		}
		return nil, err
	}
	var found *dirFormat
	for i := range dirFormats {
		f := &dirFormats[i]
		if !f.fits(dir, entries) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("holds both %s and %s; keep one kind in a directory", found.name, f.name)
		}
		found = f
	}
	if found == nil && fitsNested(dir, entries) {
		found = &dirFormat{"directories of images", fitsNested, openImages, true}
	}
	if found == nil {
		return nil, errors.New("holds no data known here: IDX files (train-images-idx3-ubyte …), " +
			"CIFAR-10 binary files (data_batch_1.bin …), tokens (train.bin, val.bin), a directory of images per class, or pictures with labels.csv beside them or beside images")
	}
	if err := opt.checkResize(found.pictures, found.name); err != nil {
		return nil, err
	}
	return found.open(dir, opt)
}

// ErrNoSplit says that the data exist, but not the requested split.
var ErrNoSplit = errors.New("the split is missing")

// check fills in the default split and refuses others.
func (opt Options) check() (Options, error) {
	switch opt.Split {
	case "":
		opt.Split = Train
	case Train, Test:
	default:
		return opt, fmt.Errorf("there is no split %q; write train or test", opt.Split)
	}
	if opt.Limit < 0 || opt.Offset < 0 {
		return opt, fmt.Errorf("limit %d, offset %d: neither can be negative", opt.Limit, opt.Offset)
	}
	return opt, nil
}

// checkResize refuses impossible extents of pictures, and any extents for other data.
func (opt Options) checkResize(pictures bool, what string) error {
	h, w := opt.Resize[0], opt.Resize[1]
	switch {
	case opt.Resize == [2]int{}:
	case min(h, w) < 1 || max(h, w) > maxImageExtent:
		return fmt.Errorf("resize to %d×%d; want 1 to %d rows and columns", h, w, maxImageExtent)
	case !pictures:
		return fmt.Errorf("%s cannot be resized; that is for PNG and JPEG files", what)
	}
	return nil
}

// window returns the samples lo to hi of n that the options select.
func (opt Options) window(n int) (lo, hi int, err error) {
	if opt.Offset >= n {
		return 0, 0, fmt.Errorf("offset %d leaves none of the %d %s samples", opt.Offset, n, opt.Split)
	}
	lo, hi = opt.Offset, n
	if opt.Limit > 0 && opt.Limit < hi-lo {
		hi = lo + opt.Limit
	}
	return lo, hi, nil
}

// checkSize refuses samples of a shape that hold nothing or too many elements to count.
func checkSize(n int, shape []int) error {
	size := int64(n)
	for _, e := range shape {
		if e < 1 || n < 1 {
			return fmt.Errorf("%d samples of %s hold nothing", n, naming.ShapeText(shape))
		}
		if size > math.MaxInt64/int64(e) {
			return tooLarge(n, shape)
		}
		size *= int64(e)
	}
	if n > MaxSamples {
		return fmt.Errorf("%d samples; at most %d are taken: use a limit", n, MaxSamples)
	}
	return nil
}

func tooLarge(n int, shape []int) error {
	return fmt.Errorf("%d samples of %s are more than %d GiB; use a limit", n, naming.ShapeText(shape), npz.MaxBytes>>30)
}
