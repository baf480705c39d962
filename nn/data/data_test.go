package data

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// writeFile makes a file in dir and the directories on the way.
func writeFile(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// loaded opens a data set and reads its samples.
func loaded(name string, opt Options) (*Dataset, error) {
	d, err := Open(name, opt)
	if err != nil || d.Samples != nil {
		return d, err
	}
	samples := make([]byte, d.Bytes())
	err = d.Fill(samples)
	d.Keep(samples)
	return d, err
}

// wantError checks that opening fails with one line that says each of the words.
func wantError(t *testing.T, name string, opt Options, words ...string) {
	t.Helper()
	d, err := loaded(name, opt)
	if err == nil {
		t.Errorf("%s %+v: opened %d samples, want an error about %q", name, opt, d.Len(), words)
		return
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: error of several lines: %v", name, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s %+v: error %q does not say %q", name, opt, err, w)
		}
	}
}

// checkDataset checks what every data set promises.
func checkDataset(t *testing.T, d *Dataset) {
	t.Helper()
	if len(d.Samples) != d.Len()*elements(d.Shape)*int(d.Type.SizeBytes()) {
		t.Errorf("%s: %d bytes for %d samples of %v", d.Name, len(d.Samples), d.Len(), d.Shape)
	}
	for i, label := range d.Labels {
		if label < 0 || int(label) >= d.Classes {
			t.Fatalf("%s: label %d is %d of %d classes", d.Name, i, label, d.Classes)
		}
	}
	for i, b := range d.Samples {
		if float64(b) > d.Divisor {
			t.Fatalf("%s: byte %d is %d, above the divisor %v", d.Name, i, b, d.Divisor)
		}
	}
	if d.Name == "" || d.Source == "" {
		t.Errorf("data set has name %q and source %q", d.Name, d.Source)
	}
}

// Whatever the source, a limit and an offset select from the whole.
func TestLimitAndOffset(t *testing.T) {
	cifar, idx, images := t.TempDir(), t.TempDir(), t.TempDir()
	writeCIFAR(t, cifar, 7, 5)
	writeIDX(t, idx, "train", [3]int{3, 5, 2}, 13, false)
	for i := range 13 {
		writePNG(t, images, filepath.Join([]string{"a", "b", "c"}[i%3], string(rune('k'+i))+".png"), 5, 7, byte(i))
	}
	for _, name := range []string{"digits", "synthetic:2x3x5:13:7", cifar, idx, images} {
		all := must.Get(loaded(name, Options{}))(t)
		checkDataset(t, all)
		n, size := all.Len(), len(all.Samples)/all.Len()
		for _, opt := range []Options{
			{Limit: 1}, {Offset: 1}, {Limit: 3, Offset: 5}, {Limit: n}, {Limit: n + 1}, {Offset: n - 1}, {Limit: 7, Offset: n - 2},
		} {
			lo, hi := opt.Offset, n
			if opt.Limit > 0 {
				hi = min(n, lo+opt.Limit)
			}
			part := must.Get(loaded(name, opt))(t)
			if !slices.Equal(part.Labels, all.Labels[lo:hi]) || !bytes.Equal(part.Samples, all.Samples[lo*size:hi*size]) {
				t.Errorf("%s %+v: not samples %d to %d of %d", name, opt, lo, hi, n)
			}
			if !slices.Equal(part.Shape, all.Shape) || part.Classes != all.Classes || part.Divisor != all.Divisor {
				t.Errorf("%s %+v: shape %v of %d classes, want %v of %d", name, opt, part.Shape, part.Classes, all.Shape, all.Classes)
			}
		}
		wantError(t, name, Options{Offset: n}, name, "offset")
		wantError(t, name, Options{Limit: -1}, name, "negative")
		wantError(t, name, Options{Offset: -1}, name, "negative")
		wantError(t, name, Options{Split: "dev"}, name, `"dev"`, "train or test")
	}
}

func TestOpenDataRefuses(t *testing.T) {
	dir := t.TempDir()
	wantError(t, dir, Options{}, dir, "holds no data known here")
	wantError(t, filepath.Join(dir, "none"), Options{}, "none", "no such directory")
	wantError(t, "digit", Options{}, "digit", "write digits, synthetic")
	wantError(t, writeFile(t, dir, "notes.md", nil), Options{}, "notes.md", "give the directory")
	wantError(t, dir, Options{}, "holds no data known here")
	writeFile(t, dir, "other/notes.txt", nil) // a directory without images is no data
	wantError(t, dir, Options{}, "holds no data known here")
	writeCIFAR(t, dir, 3)
	if _, err := loaded(dir, Options{}); err != nil {
		t.Errorf("CIFAR-10 beside other files: %v", err)
	}
	writeIDX(t, dir, "train", [3]int{1, 3, 2}, 5, false)
	wantError(t, dir, Options{}, "both IDX files and CIFAR-10", "keep one")
}
