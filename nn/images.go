package nn

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // the formats a directory of images may hold
	_ "image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// testStride: without directories train and test, every fifth image of a class, in the order of
// file names, belongs to the test.
const testStride = 5

// maxImageExtent refuses pictures whose header promises absurd sizes, before any pixel is
// decoded.
const maxImageExtent = 1 << 14

// maxPixelsPerByte bounds what a picture's header is believed: a byte that deflate makes has up to
// eight pixels, and JPEG spends a bit on 64 pixels at least.
const maxPixelsPerByte = 8 * maxInflation

func isImageFile(_ string, e os.DirEntry) bool {
	return isPictureName(e.Name()) && !strings.HasPrefix(e.Name(), ".") && e.Type()&^fs.ModeSymlink == 0
}

func isPictureName(name string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg"}, strings.ToLower(filepath.Ext(name)))
}

// isClassDir reports whether the entry at a path is a directory that may hold a class. A symbolic
// link is followed. A hidden directory is not a class.
func isClassDir(path string, e os.DirEntry) bool {
	if strings.HasPrefix(e.Name(), ".") {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fitsImages looks for a picture one directory down, or two below train and test. It ignores all
// other directories beside the data.
func fitsImages(dir string, entries []os.DirEntry) bool {
	return !fitsLabelled(dir, entries) && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		path := filepath.Join(dir, e.Name())
		if !isClassDir(path, e) {
			return false
		}
		if e.Name() != Train && e.Name() != Test {
			return holdsImage(path)
		}
		classes, err := list(path, isClassDir)
		return err == nil && slices.ContainsFunc(classes, holdsImage)
	})
}

func holdsImage(dir string) bool {
	files, err := list(dir, isImageFile)
	return err == nil && len(files) > 0
}

// openImages opens a directory that has one directory per class. The classes are numbered in the
// order of their names.
func openImages(dir string, opt DataOptions) (*Dataset, error) {
	classes, source, err := findImages(dir, opt.Split)
	if err != nil {
		return nil, err
	}
	return openPictures(dir, source, classes, opt)
}

// openPictures opens the files of each class of a split. The samples alternate between the classes,
// the first image of each, then the second, so that a limit keeps all classes.
func openPictures(dir, source string, classes [][]string, opt DataOptions) (*Dataset, error) {
	paths, labels := roundRobin(classes)
	if len(paths) == 0 {
		return nil, fmt.Errorf("the directories hold no %s image: %w; put PNG or JPEG files into one directory per class", opt.Split, ErrNoSplit)
	}
	lo, hi, err := opt.window(len(paths))
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Name: filepath.Base(filepath.Clean(dir)), Classes: len(classes), Divisor: 255,
		Source: source, Labels: labels[lo:hi],
	}
	if d.Shape, err = imageShape(paths[0]); err != nil {
		return nil, err
	}
	if _, err := imageBytes(hi-lo, d.Shape); err != nil {
		return nil, err
	}
	p := &pictures{paths[lo:hi], d.Shape, paths[0]}
	d.images = p
	return d, inParts(hi-lo, func(lo, hi int) error {
		for _, path := range p.paths[lo:hi] {
			if err := p.check(path); err != nil {
				return err
			}
		}
		return nil
	})
}

// pictures is images in files of their own, of the shape of one of them.
type pictures struct {
	paths []string
	shape [3]int
	like  string
}

func (p *pictures) open() (imageReader, error) { return p, nil }
func (p *pictures) Close() error               { return nil }

func (p *pictures) readImages(dst []byte, first int) error {
	size := p.shape[0] * p.shape[1] * p.shape[2]
	for ; len(dst) > 0; first++ {
		if err := p.decode(dst[:0:size], p.paths[first]); err != nil {
			return err
		}
		dst = dst[size:]
	}
	return nil
}

// findImages returns the files of each class of the split.
func findImages(dir, split string) (classes [][]string, source string, err error) {
	classDirs, err := list(dir, isClassDir)
	if err != nil {
		return nil, "", err
	}
	root := filepath.Join(dir, split)
	separate := slices.Contains(classDirs, filepath.Join(dir, Train)) || slices.Contains(classDirs, filepath.Join(dir, Test))
	source = everyFifthOf(dir)
	if separate {
		if !slices.Contains(classDirs, root) {
			return nil, "", fmt.Errorf("there is no directory %s beside the other split; add it", root)
		}
		source = root
		if classDirs, err = splitClasses(dir, split); err != nil {
			return nil, "", err
		}
	}
	for _, class := range classDirs {
		files, err := list(class, isImageFile)
		if errors.Is(err, os.ErrNotExist) && separate {
			classes = append(classes, nil) // a class without a test
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if len(files) == 0 {
			return nil, "", fmt.Errorf("%s holds no PNG or JPEG file; every directory is a class: add images or remove it", class)
		}
		if !separate {
			files = everyFifth(files, split == Test)
		}
		classes = append(classes, files)
	}
	return classes, source, nil
}

// splitClasses returns the directories of a split in the order of the classes of the training,
// where there is one. Those that the split lacks are among them.
func splitClasses(dir, split string) ([]string, error) {
	own, err := list(filepath.Join(dir, split), isClassDir)
	classes, noTraining := list(filepath.Join(dir, Train), isClassDir)
	if err != nil || noTraining != nil {
		return own, err
	}
	for i, class := range classes {
		classes[i] = filepath.Join(dir, split, filepath.Base(class))
	}
	for _, class := range own {
		if !slices.Contains(classes, class) {
			return nil, fmt.Errorf("%s is a class that the training does not have; rename it or add %s", class, filepath.Join(dir, Train, filepath.Base(class)))
		}
	}
	return classes, nil
}

// list returns the paths of some entries of a directory, in the order of their names.
func list(dir string, keep func(path string, e os.DirEntry) bool) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	var paths []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); keep(path, e) {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// everyFifthOf says where the images of a directory without splits are from.
func everyFifthOf(dir string) string {
	return fmt.Sprintf("%s, every %dth image of a class for the test", dir, testStride)
}

// everyFifth keeps files 4, 9, 14, … or all others.
func everyFifth(files []string, test bool) []string {
	var kept []string
	for i, f := range files {
		if (i%testStride == testStride-1) == test {
			kept = append(kept, f)
		}
	}
	return kept
}

// roundRobin lists the files of all classes in turn.
func roundRobin(classes [][]string) (paths []string, labels []int32) {
	var left []int32 // classes with more than i files
	for class := range classes {
		left = append(left, int32(class))
	}
	for i := 0; len(left) > 0; i++ {
		left = slices.DeleteFunc(left, func(class int32) bool { return i >= len(classes[class]) })
		for _, class := range left {
			paths, labels = append(paths, classes[class][i]), append(labels, class)
		}
	}
	return paths, labels
}

// imageShape reads the extents of a picture without decoding it. It has one channel if it is
// grey, else three.
func imageShape(path string) (shape [3]int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return shape, err
	}
	defer f.Close()
	cfg, _, err := image.DecodeConfig(f)
	if err != nil {
		return shape, fmt.Errorf("%s: %w; replace the file or remove it", path, err)
	}
	if cfg.Width < 1 || cfg.Height < 1 || cfg.Width > maxImageExtent || cfg.Height > maxImageExtent {
		return shape, fmt.Errorf("%s: %d×%d pixels; the largest picture read is %d×%d",
			path, cfg.Width, cfg.Height, maxImageExtent, maxImageExtent)
	}
	info, err := f.Stat()
	if err != nil {
		return shape, err
	}
	if int64(cfg.Width)*int64(cfg.Height) > maxPixelsPerByte*info.Size() {
		return shape, fmt.Errorf("%s: %d×%d pixels are more than its %d bytes can hold; replace the file or remove it", path, cfg.Width, cfg.Height, info.Size())
	}
	channels := 3
	if cfg.ColorModel == color.GrayModel || cfg.ColorModel == color.Gray16Model {
		channels = 1
	}
	return [3]int{channels, cfg.Height, cfg.Width}, nil
}

// check refuses a picture of another shape.
func (p *pictures) check(path string) error {
	got, err := imageShape(path)
	if err == nil && got != p.shape {
		err = fmt.Errorf("%s is %d×%d×%d (channels×height×width), but %s is %d×%d×%d; "+
			"all images must be equal: resize them first",
			path, got[0], got[1], got[2], p.like, p.shape[0], p.shape[1], p.shape[2])
	}
	return err
}

// decode adds the pixels of a picture, which may have changed since it was checked. A transparent
// picture is laid over black.
func (p *pictures) decode(dst []byte, path string) error {
	if err := p.check(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	img, _, err := image.Decode(f)
	if err != nil {
		return fmt.Errorf("%s: %w; replace the file or remove it", path, err)
	}
	appendPixels(dst, img, p.shape)
	return nil
}

// appendPixels adds the channels one after the other.
func appendPixels(dst []byte, img image.Image, shape [3]int) []byte {
	size := image.Rect(0, 0, shape[2], shape[1])
	if shape[0] == 1 {
		grey := image.NewGray(size)
		draw.Draw(grey, size, img, img.Bounds().Min, draw.Src)
		return append(dst, grey.Pix...)
	}
	rgba := image.NewRGBA(size)
	draw.Draw(rgba, size, img, img.Bounds().Min, draw.Src)
	for channel := range shape[0] {
		for i := channel; i < len(rgba.Pix); i += 4 {
			dst = append(dst, rgba.Pix[i])
		}
	}
	return dst
}
