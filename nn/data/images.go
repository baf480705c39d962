package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// testStride: without directories train and test, every fifth image of a class, in the order of
// file names, belongs to the test.
const testStride = 5

func isImageFile(_ string, e os.DirEntry) bool {
	return isPictureName(e.Name()) && !strings.HasPrefix(e.Name(), ".") && e.Type()&^fs.ModeSymlink == 0
}

// isForeignPicture tells pictures in formats that other programs read.
func isForeignPicture(_ string, e os.DirEntry) bool {
	return slices.Contains([]string{".ppm", ".pgm", ".bmp", ".gif", ".tif", ".tiff", ".webp"}, strings.ToLower(filepath.Ext(e.Name()))) && !strings.HasPrefix(e.Name(), ".")
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
// other directories there.
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

// fitsNested also looks further down, for a directory whose classes have nothing but directories.
func fitsNested(dir string, entries []os.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		path := filepath.Join(dir, e.Name())
		if !isClassDir(path, e) {
			return false
		}
		files, _, err := picturesBelow(path)
		return err == nil && len(files) > 0
	})
}

// maxNesting bounds how far below a class a picture may be: a link may lead to a directory above it.
const maxNesting = 32

// picturesBelow lists the pictures of a directory and of those below it, in the order of torchvision's ImageFolder: by directory,
// then by name. Others are pictures in formats that are not read.
func picturesBelow(dir string) (pictures, others []string, err error) {
	dirs := []string{dir}
	for i := 0; i < len(dirs); i++ {
		below, err := list(dirs[i], isClassDir)
		if err != nil {
			return nil, nil, err
		}
		if strings.Count(dirs[i], string(filepath.Separator))-strings.Count(dir, string(filepath.Separator)) == maxNesting && below != nil {
			return nil, nil, fmt.Errorf("%s has directories more than %d deep; is it a link to one above it?", dirs[i], maxNesting)
		}
		dirs = append(dirs, below...)
	}
	slices.Sort(dirs)
	for _, d := range dirs {
		files, err := list(d, isImageFile)
		if err != nil {
			return nil, nil, err
		}
		foreign, err := list(d, isForeignPicture)
		if err != nil {
			return nil, nil, err
		}
		pictures, others = append(pictures, files...), append(others, foreign...)
	}
	return pictures, others, nil
}

// openImages opens a directory that has one directory per class. The classes are numbered in the
// order of their names.
func openImages(dir string, opt Options) (*Dataset, error) {
	found, err := findImages(dir, opt.Split)
	if err != nil {
		return nil, err
	}
	d, err := openPictures(dir, found.source, found.classes, opt)
	if err != nil {
		return nil, err
	}
	d.HeldOut = found.heldOut
	if n := len(found.others); n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d pictures in %s are left out, as %s: dahl reads PNG and JPEG", n, dir, found.others[0]))
	}
	return d, nil
}

// openPictures opens the files of each class of a split. The samples alternate between the classes,
// the first image of each, then the second, so that a limit keeps all classes.
func openPictures(dir, source string, classes [][]string, opt Options) (*Dataset, error) {
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
	p := &pictures{paths: paths[lo:hi]}
	if opt.Resize != [2]int{} {
		p.shape = [3]int{3, opt.Resize[0], opt.Resize[1]}
	} else if p.shape, err = imageShape(paths[0]); err != nil {
		return nil, err
	} else {
		p.like = paths[0]
	}
	var grey atomic.Int64
	err = inParts(hi-lo, func(lo, hi int) error {
		for _, path := range p.paths[lo:hi] {
			isGrey, err := p.check(path)
			if err != nil {
				return err
			}
			if isGrey {
				grey.Add(1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.shape[0] = 3
	if n := int(grey.Load()); n == hi-lo && !opt.Colour {
		p.shape[0] = 1
	} else if n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of the %d %s pictures in %s are grey among colours, and are read as RGB with three equal channels", n, hi-lo, opt.Split, dir))
	}
	d.Shape, d.source = p.shape[:], p
	return d, checkSize(hi-lo, d.Shape)
}

// foundImages are the pictures of a split in a directory.
type foundImages struct {
	classes [][]string // the pictures of each
	others  []string   // pictures that are not read
	source  string     // see [Dataset.Source]
	heldOut string     // see [Dataset.HeldOut]
}

// findImages finds the pictures of a split.
func findImages(dir, split string) (*foundImages, error) {
	classDirs, err := list(dir, isClassDir)
	if err != nil {
		return nil, err
	}
	found := &foundImages{source: everyFifthOf(dir), heldOut: heldOut}
	root := filepath.Join(dir, split)
	separate := slices.Contains(classDirs, filepath.Join(dir, Train)) || slices.Contains(classDirs, filepath.Join(dir, Test))
	if separate {
		if !slices.Contains(classDirs, root) {
			return nil, fmt.Errorf("there is no directory %s beside the other split; add it", root)
		}
		found.source, found.heldOut = root, ""
		if classDirs, err = splitClasses(dir, split); err != nil {
			return nil, err
		}
	}
	for _, class := range classDirs {
		files, others, err := picturesBelow(class)
		if errors.Is(err, os.ErrNotExist) && separate {
			found.classes = append(found.classes, nil) // a class without a test
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s holds no PNG or JPEG file; every directory is a class: add images or remove it", class)
		}
		if !separate {
			files = everyFifth(files, split == Test)
		}
		found.classes, found.others = append(found.classes, files), append(found.others, others...)
	}
	return found, nil
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
	return fmt.Sprintf("%s, %s", dir, heldOut)
}

// heldOut is the text of [Dataset.HeldOut].
var heldOut = fmt.Sprintf("every %dth image of a class for the test", testStride)

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
