package weights

import (
	"io"
	"path/filepath"
	"strings"

	"dahl/nn/npz"
)

// Format is a format of files of weights.
type Format struct {
	Ending string // of the names of its files
	// Decode reads the arrays of a file of a size. A check skips an array with [npz.ErrSkip]; nil means that all are wanted.
	Decode func(r io.ReaderAt, size int64, check func(*npz.Array) error) ([]npz.Array, error)
	Encode func(w io.Writer, arrays []npz.Array) error
}

// Formats is the table of formats. A file with any other ending has the first one.
func Formats() []Format {
	return []Format{
		{".npz", npz.Decode, npz.Encode},
		{".safetensors", decodeSafetensors, encodeSafetensors},
	}
}

// Endings are the endings of the names of files of weights.
func Endings() (all []string) {
	for _, f := range Formats() {
		all = append(all, f.Ending)
	}
	return all
}

// FormatOf is the format of a file by the ending of its name.
func FormatOf(path string) Format {
	all := Formats()
	for _, f := range all {
		if strings.EqualFold(filepath.Ext(path), f.Ending) {
			return f
		}
	}
	return all[0]
}

// Read reads the arrays of a file, as [Format].Decode does.
func Read(path string, check func(*npz.Array) error) ([]npz.Array, error) {
	return npz.ReadAs(path, check, FormatOf(path).Decode)
}
