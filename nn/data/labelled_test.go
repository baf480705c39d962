package data

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// writeLabelled writes a picture for each name, whose first pixels are first, first+1, …, and
// their labels file.
func writeLabelled(t *testing.T, dir, labels string, first byte, names ...string) {
	t.Helper()
	for i, name := range names {
		writePNG(t, dir, filepath.Join("images", name), 5, 3, first+byte(i))
	}
	writeFile(t, dir, "labels.csv", []byte(labels))
}

// Names are numbered in their order: bee 0, cow 1. Of the cows, which are c1 to c7 by their files,
// the fifth is for the test; of the two bees none.
func TestLabelledByName(t *testing.T) {
	dir := t.TempDir()
	writeLabelled(t, dir, "\ufefffile,label\r\nc7.png,cow\r\n\r\n \"b2.png\" , bee\r\nc1.png,cow\r\nc2.png,cow\r\nc3.png,cow\nc4.png,cow\nsub/c5.png,cow\nc6.png,cow\nb1.png,bee\n",
		1, "c1.png", "c2.png", "c3.png", "c4.png", "sub/c5.png", "c6.png", "c7.png", "b1.png", "b2.png", "not listed.png")
	wantError(t, dir, Options{}, "labels.csv:4: not a line of CSV")
	labels := "file,label\r\nc7.png,cow\r\n\r\n\"b2.png\", bee\r\nc1.png,cow\r\nc2.png,cow\r\nc3.png,cow\nc4.png,cow\nsub/c5.png,cow\nc6.png,cow\nb1.png,bee\n"
	for _, name := range []string{"labels.csv", "labels.txt"} {
		if err := os.Remove(filepath.Join(dir, "labels.csv")); err != nil && name == "labels.csv" {
			t.Fatal(err)
		}
		writeFile(t, dir, name, []byte("\ufeff"+labels))
		d := must.Get(loaded(dir, Options{}))(t)
		checkDataset(t, d)
		// In the order of files: c1 1, c2 2, c3 3, c4 4, c6 6, c7 7, sub/c5 5. The fifth is c6.
		if got, want := firstPixels(d), []byte{8, 1, 9, 2, 3, 4, 7, 5}; !slices.Equal(got, want) {
			t.Errorf("training images %d, want %d", got, want)
		}
		if want := "left out: 1 picture in " + filepath.Join(dir, "images") + " without a line in " + filepath.Join(dir, name); !slices.Equal(d.Notes, []string{want}) {
			t.Errorf("notes %q, want %s", d.Notes, want)
		}
		if part := must.Get(loaded(dir, Options{Limit: 2}))(t); d.HeldOut != heldOut || part.HeldOut != heldOut {
			t.Errorf("held out %q, and %q of a part", d.HeldOut, part.HeldOut)
		}
		if want := []int32{0, 1, 0, 1, 1, 1, 1, 1}; !slices.Equal(d.Labels, want) || d.Classes != 2 || !slices.Equal(d.Shape, []int{1, 5, 3}) {
			t.Errorf("labels %d of %d classes, want %d of 2; shape %v", d.Labels, d.Classes, want, d.Shape)
		}
		test := must.Get(loaded(dir, Options{Split: Test}))(t)
		if got := firstPixels(test); !slices.Equal(got, []byte{6}) || test.Labels[0] != 1 || test.Classes != 2 {
			t.Errorf("test images %d of classes %d", got, test.Labels)
		}
	}
	writeFile(t, dir, "labels.csv", []byte(labels))
	wantError(t, dir, Options{}, "labels.csv", "labels.txt", "keep one of them")
}

// Whole numbers are the classes, 0 to the greatest in the training; 07 is 7. The test is numbered
// as the training, whatever it has.
func TestLabelledSplits(t *testing.T) {
	dir := t.TempDir()
	writeLabelled(t, filepath.Join(dir, "train"), "a.png,3\nb.png,07\nc.png,3\n", 1, "a.png", "b.png", "c.png")
	wantError(t, dir, Options{Split: Test}, filepath.Join(dir, "test")+" has no pictures", "labels.csv")
	writeLabelled(t, filepath.Join(dir, "test"), "a.png,7\nb.png,0\n", 11, "a.png", "b.png")
	for split, want := range map[string]struct {
		pixels []byte
		labels []int32
	}{Train: {[]byte{1, 2, 3}, []int32{3, 7, 3}}, Test: {[]byte{12, 11}, []int32{0, 7}}} {
		d := must.Get(loaded(dir, Options{Split: split}))(t)
		checkDataset(t, d)
		if got := firstPixels(d); !slices.Equal(got, want.pixels) || !slices.Equal(d.Labels, want.labels) || d.Classes != 8 || d.HeldOut != "" {
			t.Errorf("%s: images %d with labels %d of %d classes, want %d with %d of 8", split, got, d.Labels, d.Classes, want.pixels, want.labels)
		}
	}
	for _, label := range []string{"8", "-1", "cat", "99999999999999999999"} {
		writeFile(t, dir, "test/labels.csv", fmt.Appendf(nil, "picture,class\nb.png,1\na.png,%s\n", label))
		wantError(t, dir, Options{Split: Test}, "test/labels.csv:3: ", `"`+label+`"`, "train/labels.csv")
	}
}

// Where no directory is called images, pictures lie beside the labels file: cow 0 and ox 1.
func TestLabelledBeside(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"1.png", "2.png", "sub/3.png", "4.png"} {
		writePNG(t, dir, name, 5, 3, byte(i+1))
	}
	writeFile(t, dir, "labels.csv", []byte("1.png,ox\n2.png,cow\nsub/3.png,ox\n"))
	d := must.Get(loaded(dir, Options{}))(t)
	if got := firstPixels(d); !slices.Equal(got, []byte{2, 1, 3}) || !slices.Equal(d.Labels, []int32{0, 1, 1}) || len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0], "left out: 1 picture in ") {
		t.Errorf("images %d with labels %d, %q; want 2 1 3 with 0 1 1, and 4.png left out", got, d.Labels, d.Notes)
	}
}

// A labels file without images, and images without one, are not such a directory.
func TestLabelledHalf(t *testing.T) {
	dir := t.TempDir()
	for _, class := range []string{"cat", "images"} {
		writePNG(t, dir, class+"/1.png", 5, 3, 1)
	}
	if d, err := loaded(dir, Options{}); err != nil || d.Classes != 2 {
		t.Errorf("a class that is called images: %v", err)
	}
	dir = t.TempDir()
	writeFile(t, dir, "labels.csv", []byte("1.png,3\n"))
	wantError(t, dir, Options{}, "holds no data known here")
}

func TestLabelledErrors(t *testing.T) {
	for text, want := range map[string][]string{
		"":                               {"labels.csv has no labels"},
		"file,label\n":                   {"labels.csv has no labels"},
		"1.png,a\n1.png,b\n":             {"labels.csv:2: ", `"1.png"`, "line 1"},
		"1.png,a\n./1.png,b\n":           {"labels.csv:2: ", `"1.png"`, "line 1"},
		"1.png,a,b\n":                    {"labels.csv:1: 3 fields"},
		"file,label\n1.png\n":            {"labels.csv:2: 1 fields"},
		"1.png, \n":                      {"labels.csv:1: ", "no label"},
		"file,label\n\n1,a\n":            {"labels.csv:3: ", `"1" has the name of no picture`},
		"../1.png,a\n":                   {"labels.csv:1: ", `"../1.png" lies elsewhere`},
		"/1.png,a\n":                     {"labels.csv:1: ", `"/1.png" lies elsewhere`},
		"1.png,a\n2.png,b\n":             {"labels.csv:2: ", "no file", "2.png"},
		"1.png,a\ndir.png,b\n":           {"labels.csv:2: ", "no file", "dir.png"},
		"1.png,a\n\"2.png,b\n":           {"labels.csv:2: ", "CSV"},
		"1.png,-1\n":                     {"labels.csv:1: ", `"-1"`, "from 0 to 65535"},
		"1.png,65536\n":                  {"labels.csv:1: ", `"65536"`, "from 0 to 65535"},
		"1.png,3\n3.png,\x1b[31m":        {"labels.csv:2: ", `"\x1b[31m": a control character`},
		"1.png,3\n\x1b.png,x":            {"labels.csv:2: ", `"\x1b.png"`, "control character"},
		"1.png,99999999999999999999999,": {"labels.csv:1: 3 fields"},
		"1.png,99999999999999999999999":  {"labels.csv:1: ", "from 0 to 65535"},
	} {
		dir := t.TempDir()
		writeLabelled(t, dir, text, 1, "1.png")
		must.Do(t, os.Mkdir(filepath.Join(dir, "images/dir.png"), 0o777))
		wantError(t, dir, Options{}, want...)
	}
}

// What a labels file says names pictures below images, each once and with a label, and either all
// of its labels have a class or none is numbered.
func FuzzLabels(f *testing.F) {
	for _, text := range []string{"file,label\n1.png,cat\n", "1.png,3\n2.jpg,07\n", "\ufeffa/b.jpeg,\"x,y\"\r\n", "1.png,-1\n", "1.png,a\n1.png,b\n", "../1.png,a", "1.png"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseLabels(bytes.NewReader(text), "labels.csv")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		files := map[string]bool{}
		for _, l := range list {
			if !filepath.IsLocal(l.file) || l.label == "" || files[l.file] || l.line < 1 || l.line > 1+bytes.Count(text, []byte("\n")) {
				t.Errorf("line %d: %q is %q", l.line, l.file, l.label)
			}
			files[l.file] = true
		}
		classes, err := classesOf(list, "labels.csv")
		for _, l := range list {
			if n, known := classes.number(l.label); err == nil && (!known || n < 0 || n >= min(classes.count, maxClasses)) {
				t.Errorf("%q is class %d of %d", l.label, n, classes.count)
			}
		}
	})
}
