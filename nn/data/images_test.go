package data

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// writePNG writes a grey picture whose pixel p has the value first+p.
func writePNG(t testing.TB, dir, name string, height, width int, first byte) {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = first + byte(i)
	}
	writeFile(t, dir, name, encode(t, img))
}

func encode(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, img))
	return b.Bytes()
}

// firstPixels lists the first byte of each image, by which the tests tell them apart.
func firstPixels(d *Dataset) []byte {
	var first []byte
	for i := 0; i < len(d.Samples); i += len(d.Samples) / d.Len() {
		first = append(first, d.Samples[i])
	}
	return first
}

// Class b has images 1 to 7, class a 11 to 13. Every fifth of a class is for the
// test: image 5. The others go round the classes, a before b.
func TestImagesSplitEveryFifth(t *testing.T) {
	dir := t.TempDir()
	for i := range byte(7) {
		writePNG(t, dir, "b/"+string(rune('p'+i))+".png", 5, 3, 1+i)
	}
	for i := range byte(3) {
		writePNG(t, dir, "a/"+string(rune('p'+i))+".PNG", 5, 3, 11+i)
	}
	writeFile(t, dir, "a/notes.txt", nil)
	writeFile(t, dir, "readme.txt", nil)
	writeFile(t, dir, ".cache/x.png", []byte("no picture"))
	train := must.Get(loaded(dir, Options{}))(t)
	checkDataset(t, train)
	if got, want := firstPixels(train), []byte{11, 1, 12, 2, 13, 3, 4, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("training images %d, want %d", got, want)
	}
	if want := []int32{0, 1, 0, 1, 0, 1, 1, 1, 1}; !slices.Equal(train.Labels, want) {
		t.Errorf("labels %d, want %d", train.Labels, want)
	}
	if !slices.Equal(train.Shape, []int{1, 5, 3}) || train.Classes != 2 || !strings.Contains(train.Source, "every 5th") || train.HeldOut != "every 5th image of a class for the test" {
		t.Errorf("shape %v, %d classes, source %q, held out %q", train.Shape, train.Classes, train.Source, train.HeldOut)
	}
	test := must.Get(loaded(dir, Options{Split: Test}))(t)
	if got := firstPixels(test); !slices.Equal(got, []byte{5}) || test.Labels[0] != 1 || test.Classes != 2 {
		t.Errorf("test images %d of classes %d", got, test.Labels)
	}
}

func TestImagesSplitByDirectory(t *testing.T) {
	dir := t.TempDir()
	writePNG(t, dir, "train/cat/1.png", 5, 3, 1)
	writePNG(t, dir, "train/dog/1.png", 5, 3, 2)
	wantError(t, dir, Options{Split: Test}, filepath.Join(dir, "test"), "add it")
	writePNG(t, dir, "test/cat/1.png", 5, 3, 3)
	writePNG(t, dir, "test/dog/1.png", 5, 3, 4)
	for split, want := range map[string][]byte{Train: {1, 2}, Test: {3, 4}} {
		d := must.Get(loaded(dir, Options{Split: split}))(t)
		checkDataset(t, d)
		if got := firstPixels(d); !slices.Equal(got, want) || d.Source != filepath.Join(dir, split) || d.HeldOut != "" {
			t.Errorf("%s: images %d from %s, want %d; held out %q", split, got, d.Source, want, d.HeldOut)
		}
	}
}

// A test need not have all classes, but no others: they are numbered as in the training.
func TestImagesOfSomeClasses(t *testing.T) {
	dir := t.TempDir()
	for _, class := range []string{"train/ant", "train/bee", "train/cat", "test/bee", "test/cat"} {
		writePNG(t, dir, class+"/1.png", 5, 3, 1)
	}
	d := must.Get(loaded(dir, Options{Split: Test}))(t)
	if want := []int32{1, 2}; !slices.Equal(d.Labels, want) || d.Classes != 3 {
		t.Errorf("labels %d of %d classes, want %d of 3", d.Labels, d.Classes, want)
	}
	writePNG(t, dir, "test/dog/1.png", 5, 3, 1)
	wantError(t, dir, Options{Split: Test}, filepath.Join(dir, "test", "dog"), "rename it or add")
}

// A header of 16,000 × 16,000 pixels is not believed of a file of some hundred bytes, which would
// take 256 MB of grey, or 1 GB in four channels: no such file decodes to them.
func TestImagePromisesTooMuch(t *testing.T) {
	dir := t.TempDir()
	file := encode(t, image.NewGray(image.Rect(0, 0, 7, 5)))
	header := file[8+4 : 8+4+4+13] // behind the signature and the length of the first chunk
	binary.BigEndian.PutUint32(header[4:], 16000)
	binary.BigEndian.PutUint32(header[8:], 16000)
	binary.BigEndian.PutUint32(file[8+4+4+13:], crc32.ChecksumIEEE(header))
	writeFile(t, dir, "class/1.png", file)
	wantError(t, dir, Options{}, "16000×16000 pixels", "can hold")
}

// Colours become three planes; an opaque picture gives the bytes it was made of
// in every model, black where it is transparent.
func TestImageColours(t *testing.T) {
	const height, width = 5, 3
	size := image.Rect(2, 1, 2+width, 1+height) // a picture need not start at 0,0
	nrgba, rgba := image.NewNRGBA(size), image.NewRGBA(size)
	paletted := image.NewPaletted(size, nil)
	var want [3 * height * width]byte
	for y := range height {
		for x := range width {
			i := y*width + x
			c := color.NRGBA{R: byte(3 * i), G: byte(100 + i), B: byte(255 - 5*i), A: 255}
			if i == 4 {
				c.A = 0
			} else {
				want[i], want[15+i], want[30+i] = c.R, c.G, c.B
			}
			nrgba.SetNRGBA(2+x, 1+y, c)
			rgba.Set(2+x, 1+y, c)
			paletted.Palette = append(paletted.Palette, c)
			paletted.SetColorIndex(2+x, 1+y, uint8(i))
		}
	}
	for name, img := range map[string]image.Image{"nrgba": nrgba, "rgba": rgba, "paletted": paletted} {
		dir := t.TempDir()
		writeFile(t, dir, "class/1.png", encode(t, img))
		d := must.Get(loaded(dir, Options{}))(t)
		if !slices.Equal(d.Shape, []int{3, height, width}) || !bytes.Equal(d.Samples, want[:]) {
			t.Errorf("%s: shape %v, pixels\n%d, want\n%d", name, d.Shape, d.Samples, want)
		}
	}
}

// A JPEG of one grey value has only the first coefficient of each block, 8·(v-128)
// at most half a quantisation step off: at quality 100 the step is 1, so v itself
// is off by at most 1/16 and one rounding.
func TestImageJPEG(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 11, 17))
	for i := range img.Pix {
		img.Pix[i] = 77
	}
	var b bytes.Buffer
	must.Do(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}))
	dir := t.TempDir()
	writeFile(t, dir, "class/1.jpeg", b.Bytes())
	d := must.Get(loaded(dir, Options{}))(t)
	if !slices.Equal(d.Shape, []int{1, 17, 11}) || slices.Min(d.Samples) < 76 || slices.Max(d.Samples) > 78 {
		t.Errorf("shape %v, pixels %d to %d; want 77", d.Shape, slices.Min(d.Samples), slices.Max(d.Samples))
	}
}

func TestImagesRefuse(t *testing.T) {
	dir := t.TempDir()
	writePNG(t, dir, "a/1.png", 5, 3, 0)
	writePNG(t, dir, "b/1.png", 3, 5, 0)
	wantError(t, dir, Options{}, "b/1.png has 3×5 pixels (height×width)", "a/1.png has 5×3", "--resize 5×3 makes them so")
	wantError(t, dir, Options{Resize: [2]int{0, 3}}, "resize to 0×3; want 1 to 16384")
	wantError(t, "digits", Options{Resize: [2]int{3, 3}}, "digits cannot be resized; that is for PNG and JPEG files")
	good := encode(t, image.NewGray(image.Rect(0, 0, 3, 5)))
	writeFile(t, dir, "b/1.png", good[:len(good)-20])
	wantError(t, dir, Options{}, "b/1.png", "replace the file or remove it")
	writeFile(t, dir, "b/1.png", []byte("no picture"))
	wantError(t, dir, Options{}, "b/1.png", "unknown format")
	writeFile(t, dir, "b/1.png", nil)
	wantError(t, dir, Options{}, "b/1.png", "replace the file")
	writePNG(t, dir, "b/1.png", 5, 3, 0)
	wantError(t, dir, Options{Split: Test}, "no test image")
	writeFile(t, dir, "c/notes.txt", nil)
	wantError(t, dir, Options{}, filepath.Join(dir, "c"), "every directory is a class")

	huge := bytes.Clone(good) // a header of 2^30 pixels in each direction, without its checksum
	copy(huge[16:], []byte{0x40, 0, 0, 0, 0x40, 0, 0, 0})
	dir = t.TempDir()
	writeFile(t, dir, "a/1.png", huge)
	wantError(t, dir, Options{}, "a/1.png")
}

// TestImagesBelow: pictures below directories of a class are of the class, in torchvision's order: by directory as a text, so that
// "a/m-2" comes before "a/m/z", and then by name. A link to a directory above is refused. What only others read is said.
func TestImagesBelow(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"b/2.png", "a/m-2/3.png", "a/m/z/4.png", "a/m/5.png", "c/only/below/6.png"} {
		writePNG(t, dir, "train/"+name, 5, 3, byte(i+1))
	}
	writeFile(t, dir, "train/b/x.webp", nil)
	writePNG(t, dir, "train/b/.hidden/7.png", 5, 3, 7)
	d, err := loaded(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := firstPixels(d), []byte{4, 1, 5, 2, 3}; !slices.Equal(got, want) { // the classes in turn
		t.Errorf("images %d, want %d", got, want)
	}
	if want := "1 pictures in " + dir + " are left out, as " + filepath.Join(dir, "train/b/x.webp") + ": dahl reads PNG and JPEG"; !slices.Equal(d.Notes, []string{want}) {
		t.Errorf("notes %q, want %s", d.Notes, want)
	}
	must.Do(t, os.Symlink(filepath.Join(dir, "train"), filepath.Join(dir, "train/a/loop")))
	wantError(t, dir, Options{}, "more than 32 deep; is it a link to one above it?")

	dir = t.TempDir() // all pictures are further down, so that no name but the classes' tells the format
	writePNG(t, dir, "a/x/1.png", 5, 3, 1)
	writePNG(t, dir, "b/x/1.png", 5, 3, 2)
	if d, err = loaded(dir, Options{}); err != nil || d.Len() != 2 || d.Classes != 2 {
		t.Errorf("%+v: %v", d, err)
	}
}

// TestImagesGreyAmongColours: a grey picture has its values in all three channels, whichever comes first, and it is said. All grey ones
// have one channel, unless those of a test whose training has colours.
func TestImagesGreyAmongColours(t *testing.T) {
	dir := t.TempDir()
	colour := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	copy(colour.Pix, []byte{10, 20, 30, 255, 40, 50, 60, 255})
	writePNG(t, dir, "train/a/1.png", 1, 2, 7)
	writeFile(t, dir, "train/b/1.png", encode(t, colour))
	writePNG(t, dir, "test/a/1.png", 1, 2, 9)
	d, err := loaded(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte{7, 8, 7, 8, 7, 8, 10, 40, 20, 50, 30, 60}; !slices.Equal(d.Shape, []int{3, 1, 2}) || !slices.Equal(d.Samples, want) {
		t.Errorf("shape %v, pixels %d, want %d", d.Shape, d.Samples, want)
	}
	if want := "1 of the 2 train pictures in " + dir + " are grey among colours, and are read as RGB with three equal channels"; !slices.Equal(d.Notes, []string{want}) {
		t.Errorf("notes %q, want %s", d.Notes, want)
	}
	for colour, want := range map[bool][]byte{false: {9, 10}, true: {9, 10, 9, 10, 9, 10}} {
		if d, err = loaded(dir, Options{Split: Test, Colour: colour}); err != nil || !slices.Equal(d.Samples, want) {
			t.Errorf("test, colour %v: %+v, want %d: %v", colour, d, want, err)
		}
	}
}

// TestImagesResized: half as many columns are triangles over four pixels around the middle of two: 3/4 of both and 1/4 of their
// neighbours. At the border one is missing: (3·10 + 3·20 + 50)/7 = 20 and (20 + 3·50 + 3·80)/7 = 58.57. Twice as many rows are 1, 3/4, 1/4 and
// 0 of the upper one, as 10, 10 + 100/4, 110 - 100/4 and 110. Pixels of one colour stay what they are.
func TestImagesResized(t *testing.T) {
	grey := func(height, width int, pixels ...byte) []byte {
		img := image.NewGray(image.Rect(0, 0, width, height))
		copy(img.Pix, pixels)
		return encode(t, img)
	}
	for _, c := range []struct {
		file []byte
		size [2]int
		want []byte
	}{
		{grey(1, 4, 10, 20, 50, 80), [2]int{1, 2}, []byte{20, 59}},
		{grey(2, 1, 10, 110), [2]int{4, 1}, []byte{10, 35, 85, 110}},
		{grey(3, 3, 77, 77, 77, 77, 77, 77, 77, 77, 77), [2]int{2, 5}, []byte{77, 77, 77, 77, 77, 77, 77, 77, 77, 77}},
		{grey(1, 2, 3, 251), [2]int{1, 2}, []byte{3, 251}},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "a/1.png", c.file)
		writePNG(t, dir, "b/1.png", 5, 3, 1)
		d := must.Get(loaded(dir, Options{Resize: c.size}))(t)
		if !slices.Equal(d.Shape, []int{1, c.size[0], c.size[1]}) || !slices.Equal(d.Samples[:len(c.want)], c.want) {
			t.Errorf("to %v: shape %v, pixels %d, want %d", c.size, d.Shape, d.Samples[:len(c.want)], c.want)
		}
	}
}
