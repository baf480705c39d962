package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"dahl/must"
)

// edges are values at the edge of what a number can be, and texts that a terminal or a reader may take for something else.
var edges = []string{"0", "-1", "1", "NaN", "Inf", "-Inf", "1e308", "-1e308", "1e-320", "4294967296", "9223372036854775807", "9223372036854775808",
	"0x10", "1_000", "", " ", "\"", "[]", "{}", "null", "true", "\x1b[31m", "\u0085", "\ufeff", "..", "a,b", "=1+1", "<b>", strings.Repeat("x", 300)}

// digitsOf finds numbers, and textsOf finds what stands between quotes, in a text.
var digitsOf, textsOf = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`), regexp.MustCompile(`"[^"\n]*"`)

// mutate changes some bytes, and says how.
func mutate(random *rand.Rand, data []byte) ([]byte, string) {
	if len(data) == 0 {
		return []byte{byte(random.Uint32())}, "a byte in an empty file"
	}
	isText := !bytes.ContainsRune(data[:min(len(data), 4096)], 0)
	if isText && random.IntN(3) > 0 {
		return mutateText(random, data)
	}
	data = bytes.Clone(data)
	at := random.IntN(len(data))
	if random.IntN(3) == 0 {
		at = random.IntN(min(len(data), 200)) // headers
	}
	span := min(1+random.IntN(1<<random.IntN(9)), len(data)-at)
	switch random.IntN(7) {
	case 0, 1:
		bit := random.IntN(8)
		data[at] ^= 1 << bit
		return data, fmt.Sprintf("bit %d of byte %d flipped", bit, at)
	case 2:
		was := data[at]
		data[at] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(random.Uint32())}[random.IntN(6)]
		return data, fmt.Sprintf("byte %d: %d became %d", at, was, data[at])
	case 3:
		return data[:at], fmt.Sprintf("cut at %d of %d", at, len(data))
	case 4:
		return append(data[:at:at], data[at+span:]...), fmt.Sprintf("%d bytes at %d taken out", span, at)
	case 5:
		return append(data[:at+span:at+span], data[at:]...), fmt.Sprintf("%d bytes at %d doubled", span, at)
	default:
		clear(data[at : at+span])
		return data, fmt.Sprintf("%d bytes at %d cleared", span, at)
	}
}

// mutateText changes a number, a word or a line.
func mutateText(random *rand.Rand, data []byte) ([]byte, string) {
	edge := edges[random.IntN(len(edges))]
	lines := bytes.SplitAfter(data, []byte("\n"))
	line, other := random.IntN(len(lines)), random.IntN(len(lines))
	replace := func(found [][]int, text func(was []byte) string) ([]byte, string) {
		if len(found) == 0 {
			return append(bytes.Clone(data), edge...), fmt.Sprintf("%q at the end", edge)
		}
		f := found[random.IntN(len(found))]
		was := data[f[0]:f[1]]
		now := text(was)
		return []byte(string(data[:f[0]]) + now + string(data[f[1]:])), fmt.Sprintf("at %d: %.40q became %.40q", f[0], was, now)
	}
	switch random.IntN(8) {
	case 0, 1:
		return replace(digitsOf.FindAllIndex(data, -1), func([]byte) string { return edge })
	case 2, 3: // a digit, so that the number stays one
		return replace(regexp.MustCompile(`[0-9]`).FindAllIndex(data, -1), func(was []byte) string { return string('0' + (was[0]-'0'+byte(1+random.IntN(9)))%10) })
	case 4:
		return replace(textsOf.FindAllIndex(data, -1), func([]byte) string { return `"` + edge + `"` })
	case 5: // with another word or number of the file
		found := append(textsOf.FindAllIndex(data, -1), digitsOf.FindAllIndex(data, -1)...)
		return replace(found, func([]byte) string { f := found[random.IntN(len(found))]; return string(data[f[0]:f[1]]) })
	case 6:
		lines[line] = nil
		return bytes.Join(lines, nil), fmt.Sprintf("line %d taken out", line+1)
	default:
		lines[line] = append(bytes.Clone(lines[line]), lines[other]...)
		return bytes.Join(lines, nil), fmt.Sprintf("line %d after line %d", other+1, line+1)
	}
}

// mutateFile changes a file, within a file of the archive where it is one, or puts something else in its place.
func mutateFile(t *testing.T, random *rand.Rand, path string) (how string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch random.IntN(40) {
	case 0:
		must(os.Remove(path))
		return "is missing"
	case 1:
		must(os.WriteFile(path, nil, 0o666))
		return "is empty"
	case 2:
		must(os.Remove(path))
		must(os.Mkdir(path, 0o777))
		return "is a directory"
	case 3:
		must(os.Rename(path, path+".real"))
		must(os.Symlink(filepath.Base(path)+".real", path))
		return "is a link"
	case 4:
		must(os.Remove(path))
		must(syscall.Mkfifo(path, 0o666))
		return "is a pipe"
	}
	was, err := os.ReadFile(path)
	must(err)
	for now := was; ; {
		if z, err := zip.NewReader(bytes.NewReader(was), int64(len(was))); err == nil && len(z.File) > 0 && random.IntN(3) > 0 {
			now, how = mutateZip(t, random, z)
		} else {
			now, how = mutate(random, was)
		}
		if !bytes.Equal(now, was) {
			must(os.WriteFile(path, now, 0o666))
			return how
		}
	}
}

// mutateZip packs the files of an archive anew, one of them changed.
func mutateZip(t *testing.T, random *rand.Rand, z *zip.Reader) (data []byte, how string) {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	changed := random.IntN(len(z.File))
	for i, f := range z.File {
		r := must.Get(f.Open())(t)
		text := must.Get(io.ReadAll(r))(t)
		header := zip.FileHeader{Name: f.Name, Method: f.Method}
		if i == changed {
			if random.IntN(6) == 0 {
				header.Name = []string{edges[random.IntN(len(edges))] + ".npy", "../" + f.Name, z.File[0].Name}[random.IntN(3)]
				how = fmt.Sprintf("%q is called %.40q", f.Name, header.Name)
			} else {
				text, how = mutate(random, text)
				how = fmt.Sprintf("in %q: %s", f.Name, how)
			}
		}
		part, err := w.CreateHeader(&header)
		if err == nil {
			_, err = part.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, w.Close())
	return out.Bytes(), how
}

// mutateLine gives a flag of a command line another value, or adds one.
func mutateLine(random *rand.Rand, args, flags []string) ([]string, string) {
	args = append([]string{}, args...)
	edge := edges[random.IntN(len(edges))]
	if edge == ".." {
		edge = "nothing/../here" // above the place it would be beside what it may change
	}
	if n := len(args); n > 1 && random.IntN(3) == 0 {
		at := 1 + random.IntN(n-1)
		if args[at-1] != "--out" && args[at-1] != "--save" && args[at-1] != "--export" {
			was := args[at]
			args[at] = edge
			return args, fmt.Sprintf("argument %q became %.40q", was, edge)
		}
	}
	flag := flags[random.IntN(len(flags))]
	return append(args, "--"+flag+"="+edge), fmt.Sprintf("--%s=%.40q", flag, edge)
}
