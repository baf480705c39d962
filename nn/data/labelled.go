package data

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"dahl/dag"
	"dahl/naming"
)

// A labelled directory has pictures, in the directory images if that is there, and their classes in a file
// of lines "file,label" in CSV (RFC 4180). Training and test are two such directories, train
// and test, or the test is every fifth picture of a class.

const labelledPictures = "images"

var labelNames = []string{"labels.csv", "labels.txt"}

// maxClasses bounds the labels that are numbers, since the last layer has an output for each.
const maxClasses = 1 << 16

// maxLabelBytes bounds a labels file, which is kept while the data are opened.
const maxLabelBytes = 1 << 30

// A labelled is a line of a labels file.
type labelled struct {
	file  string // below the directory of the pictures
	label string
	line  int
}

// picturesOf is the directory with the pictures of a labelled directory: images, or the labelled directory itself.
func picturesOf(dir string) string {
	if images := filepath.Join(dir, labelledPictures); isDir(images) {
		return images
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// labelFiles lists the labels files of a directory with pictures: one, or it is no labelled directory.
func labelFiles(dir string) (found []string) {
	if picturesOf(dir) == dir {
		beside, err := os.ReadDir(dir)
		if err != nil || !slices.ContainsFunc(beside, func(e os.DirEntry) bool { return isPictureName(e.Name()) }) {
			return nil
		}
	}
	for _, name := range labelNames {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			found = append(found, path)
		}
	}
	return found
}

func fitsLabelled(dir string, _ []os.DirEntry) bool {
	return slices.ContainsFunc([]string{"", Train, Test}, func(split string) bool { return labelFiles(filepath.Join(dir, split)) != nil })
}

// openLabelled opens a labelled directory. The classes are numbered as the labels of the training
// are, if all are whole numbers, else in the order of their names.
func openLabelled(dir string, opt Options) (*Dataset, error) {
	root, source := dir, everyFifthOf(dir)
	separate := labelFiles(dir) == nil
	if separate {
		root = filepath.Join(dir, opt.Split)
		source = root
	}
	list, path, err := readLabels(root)
	if err != nil {
		return nil, err
	}
	training, trainingPath := list, path
	if train := filepath.Join(dir, Train); separate && opt.Split == Test && labelFiles(train) != nil {
		if training, trainingPath, err = readLabels(train); err != nil {
			return nil, err
		}
	}
	classes, err := classesOf(training, trainingPath)
	if err != nil {
		return nil, err
	}
	files := make([][]string, classes.count)
	slices.SortStableFunc(list, func(a, b labelled) int { return cmp.Compare(a.file, b.file) })
	for _, l := range list {
		class, known := classes.number(l.label)
		if !known {
			return nil, fmt.Errorf("%s:%d: the label %q is none of the training's, which are in %s; write one of those", path, l.line, l.label, trainingPath)
		}
		files[class] = append(files[class], filepath.Join(picturesOf(root), l.file))
	}
	for i := range files {
		if !separate {
			files[i] = everyFifth(files[i], opt.Split == Test)
		}
	}
	d, err := openPictures(dir, source, files, opt)
	if err != nil {
		return nil, err
	}
	if !separate {
		d.HeldOut = heldOut
	}
	there, others, err := picturesBelow(picturesOf(root))
	if n := len(there) + len(others) - len(list); err == nil && n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("left out: %s in %s without a line in %s", naming.Count(n, "picture"), picturesOf(root), path))
	}
	return d, err
}

// readLabels reads the labels file of a directory, whose pictures have to be there.
func readLabels(dir string) (list []labelled, path string, err error) {
	found := labelFiles(dir)
	switch len(found) {
	case 0:
		return nil, "", fmt.Errorf("%s has no pictures with their labels in %s; add both", dir, labelNames[0])
	case 1:
		path = found[0]
	default:
		return nil, "", fmt.Errorf("both %s and %s could have the labels; keep one of them", found[0], found[1])
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() // nothing was written
	if info, err := f.Stat(); err != nil || info.Size() > maxLabelBytes {
		return nil, "", cmp.Or(err, fmt.Errorf("%s has more than %d bytes; take pictures out", path, maxLabelBytes))
	}
	if list, err = parseLabels(f, path); err != nil {
		return nil, "", err
	}
	for _, l := range list {
		picture := filepath.Join(picturesOf(dir), l.file)
		if info, err := os.Stat(picture); err != nil || !info.Mode().IsRegular() {
			return nil, "", fmt.Errorf("%s:%d: there is no file %s; correct the line or take it out", path, l.line, picture)
		}
	}
	return list, path, nil
}

// parseLabels reads lines "file,label". The first one is a header if it names no picture.
func parseLabels(r io.Reader, name string) (list []labelled, err error) {
	lines := csv.NewReader(dag.WithoutMark(r))
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	lineOf := map[string]int{} // by file
	for first := true; ; first = false {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, notLabels(name, err)
		}
		line, _ := lines.FieldPos(0)
		if first && !isPictureName(strings.TrimSpace(fields[0])) {
			continue
		}
		l, err := labelledOf(fields)
		if before := lineOf[l.file]; err == nil && before > 0 {
			err = fmt.Errorf("%q has a label in line %d too; keep one of them", l.file, before)
		}
		if err == nil && len(list) == MaxSamples {
			err = fmt.Errorf("more than %d pictures; leave some out", MaxSamples)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		l.line, lineOf[l.file] = line, line
		list = append(list, l)
	}
	if list == nil {
		return nil, fmt.Errorf("%s has no labels; write a line for each picture, as in 1.png,cat", name)
	}
	return list, nil
}

// notLabels is the error of a line that is no CSV.
func notLabels(name string, err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s:%d: not a line of CSV: %w; write file,label", name, p.Line, p.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// labelledOf is the picture and the label of a line.
func labelledOf(fields []string) (l labelled, err error) {
	if len(fields) != 2 {
		return l, fmt.Errorf("%d fields; write file,label, and a name that has a comma in quotes", len(fields))
	}
	l.file, l.label = filepath.Clean(filepath.FromSlash(strings.TrimSpace(fields[0]))), strings.TrimSpace(fields[1])
	switch {
	case strings.ContainsFunc(l.file+l.label, unicode.IsControl):
		return l, fmt.Errorf("%q with the label %q: a control character; write the names without", l.file, l.label)
	case !isPictureName(l.file):
		return l, fmt.Errorf("%q has the name of no picture; write that of a PNG or JPEG file", l.file)
	case !filepath.IsLocal(l.file):
		return l, fmt.Errorf("%q lies elsewhere; write the name that it has in %s, or beside this file", l.file, labelledPictures)
	case l.label == "":
		return l, fmt.Errorf("%q has no label; write the name or number of its class", l.file)
	}
	return l, nil
}

// classNumbers are the numbers of classes.
type classNumbers struct {
	count int
	names []string // sorted; nil means that the labels are the numbers
}

// classesOf numbers the classes of the training.
func classesOf(list []labelled, path string) (c classNumbers, err error) {
	for _, l := range list {
		if _, err := strconv.Atoi(l.label); errors.Is(err, strconv.ErrSyntax) {
			return classesByName(list, path)
		}
	}
	for _, l := range list {
		n, err := strconv.Atoi(l.label)
		if err != nil || n < 0 || n >= maxClasses {
			return c, fmt.Errorf("%s:%d: the label %q: write a number from 0 to %d, or names for all", path, l.line, l.label, maxClasses-1)
		}
		c.count = max(c.count, n+1)
	}
	return c, nil
}

func classesByName(list []labelled, path string) (c classNumbers, err error) {
	for _, l := range list {
		c.names = append(c.names, l.label)
	}
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	if c.count = len(c.names); c.count > maxClasses {
		return c, fmt.Errorf("%s has %d different labels; at most %d are taken", path, c.count, maxClasses)
	}
	return c, nil
}

// number is the number of a class.
func (c *classNumbers) number(label string) (class int, known bool) {
	if c.names != nil {
		return slices.BinarySearch(c.names, label)
	}
	n, err := strconv.Atoi(label)
	return n, err == nil && n >= 0 && n < c.count
}
