package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// writePictures writes pictures of two classes, dark and light, of different sizes. The first one is grey.
func writePictures(t *testing.T, dir string, perClass int) {
	t.Helper()
	for class, name := range []string{"dark", "light"} {
		for i := range perClass {
			img := image.NewNRGBA(image.Rect(0, 0, 8+i%3, 8+class))
			for p := range img.Pix {
				img.Pix[p] = byte(40 + 160*class + i)
			}
			for p := 3; p < len(img.Pix); p += 4 {
				img.Pix[p] = 255
			}
			var picture image.Image = img
			if class+i == 0 {
				grey := image.NewGray(img.Bounds())
				for p := range grey.Pix {
					grey.Pix[p] = 40
				}
				picture = grey
			}
			var file bytes.Buffer
			must.Do(t, png.Encode(&file, picture))
			writeTestFile(t, filepath.Join(dir, name, "below", fmt.Sprintf("%02d.png", i)), file.String())
		}
	}
}

// TestPictures: of 10 pictures of each class every fifth is held out, which leaves 16 and 4. All commands with data scale them, and
// what repeats or goes on from the run does so too.
func TestPictures(t *testing.T) {
	t.Chdir(t.TempDir())
	writePictures(t, "data", 10)
	const model = "name = \"m\"\ninput = [3, 6, 5]\n[[layer]]\nkind = \"flatten\"\n[[layer]]\nkind = \"dense\"\noutputs = 2\n"
	writeTestFile(t, "m.toml", model)
	wantRefused(t, "execute --model m.toml --data data --batch 4 --out run",
		"data/light/below/00.png has 9×8 pixels (height×width), but data/dark/below/00.png has 8×8; all images must be of one size: --resize 8×8 makes them so")
	r := wantEnd(t, cli.ExitOK, "execute --model m.toml --data data --resize 6x5 --batch 4 --epochs 1 --workers 1 --out run",
		"data      data: 16 training samples 3x6x5, 4 held out (every 5th image of a class for the test)\n")
	if want := "1 of the 16 train pictures in data are grey among colours, and are read as RGB with three equal channels"; strings.Count(r.stderr, want) != 1 {
		t.Errorf("stderr %q, want %s", r.stderr, want)
	}
	mustRun(t, "rerun", "run")
	mustRun(t, strings.Fields("execute --resume run --epochs 2")...)
	mustRun(t, strings.Fields("simulate --platform laptop --model m.toml --data data --resize 6×5 --batch 4 --steps 2 --out simulated")...)
	mustRun(t, strings.Fields("plan --platform laptop --model m.toml --data data --resize 6x5 --batch 4 --out planned")...)
	must.Contain(t, mustRun(t, strings.Fields("graph --model m.toml --data data --resize 6x5 --batch 4")...), "graph     train")
}

// TestByteOrderMarks: each file of text that a user may write means the same with a byte order mark before it.
func TestByteOrderMarks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "net.toml", smallNetwork)
	mustRun(t, strings.Fields("graph --model net.toml --batch 5 --export l.toml")...)
	mustRun(t, strings.Fields("graph --model net.toml --batch 5 --export g.json")...)
	mustRun(t, strings.Fields("graph --model net.toml --batch 5 --export g.txt")...)
	mustRun(t, strings.Fields("simulate --platform laptop --model net.toml --batch 5 --steps 1 --out run")...)
	writeTestFile(t, "p.toml", importPlatform)
	writeTestFile(t, "s.stg", "1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
	writeTestFile(t, "d.dot", "digraph {\n a [size=100]; b [size=200]\n a -> b [size=3]\n}\n")
	plan := must.Get(os.ReadFile("run/plan.json"))(t)
	writeTestFile(t, "plan.json", string(plan))
	for _, line := range []string{
		"graph --model net.toml --batch 5", "graph --model net.toml --batch 5 --lowering l.toml", "graph --graph g.json",
		"graph --graph g.txt", "graph --platform p.toml --graph s.stg", "graph --platform p.toml --graph d.dot",
		"simulate --platform laptop --model net.toml --batch 5 --steps 1 --plan plan.json --out again",
	} {
		plain := mustRun(t, strings.Fields(line)...)
		for _, word := range strings.Fields(line) {
			text, err := os.ReadFile(word)
			if err != nil || !strings.Contains(word, ".") {
				continue
			}
			writeTestFile(t, word, "\ufeff"+string(text))
			if got := mustRun(t, strings.Fields(line)...); got != plain {
				t.Errorf("%s with a byte order mark in %s says\n%swant\n%s", line, word, got, plain)
			}
			writeTestFile(t, word, string(text))
		}
	}
}
