package data

import (
	"bufio"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// digitsFiles holds the text files as published, compressed; nn/data/README.md
// names their source and licence.
//
//go:embed optdigits.tra.gz optdigits.tes.gz
var digitsFiles embed.FS

const (
	digitsPixels  = 8 * 8
	digitsLevels  = 16 // the brightest pixel
	digitsClasses = 10
)

// openDigits loads the embedded Optical Recognition of Handwritten Digits: 2999
// training and 1797 test images of 1×8×8, values 0 to 16.
func openDigits(opt Options) (*Dataset, error) {
	name := "optdigits.tra.gz"
	if opt.Split == Test {
		name = "optdigits.tes.gz"
	}
	f, err := digitsFiles.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	images, labels, err := parseDigits(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lo, hi, err := opt.window(len(labels))
	if err != nil {
		return nil, err
	}
	return &Dataset{
		Name:    "digits",
		Samples: images[lo*digitsPixels : hi*digitsPixels],
		Labels:  labels[lo:hi],
		Shape:   []int{1, 8, 8},
		Classes: digitsClasses,
		Divisor: digitsLevels,
		Source:  "embedded: optdigits, E. Alpaydin and C. Kaynak 1998, UCI Machine Learning Repository, CC BY 4.0",
	}, nil
}

// parseDigits reads lines of 64 pixels and a class, separated by commas. A line
// that starts with # is a comment.
func parseDigits(r io.Reader) (images []byte, labels []int32, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, ",")
		if len(fields) != digitsPixels+1 {
			return nil, nil, fmt.Errorf("line %d: %d numbers; a line has 64 pixels and a class", n, len(fields))
		}
		for i, field := range fields {
			v, err := strconv.ParseUint(field, 10, 8)
			switch {
			case err != nil:
				return nil, nil, fmt.Errorf("line %d: %q is not a small whole number", n, field)
			case i < digitsPixels && v > digitsLevels:
				return nil, nil, fmt.Errorf("line %d: pixel %d is %d; the largest is 16", n, i, v)
			case i < digitsPixels:
				images = append(images, byte(v))
			case v >= digitsClasses:
				return nil, nil, fmt.Errorf("line %d: class %d; the largest is 9", n, v)
			default:
				labels = append(labels, int32(v))
			}
		}
	}
	return images, labels, lines.Err()
}
