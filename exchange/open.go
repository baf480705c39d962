package exchange

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"dahl/exchange/recording"
)

// File is a file that is read once, from its beginning. It may be compressed by gzip.
type File = recording.File

// ReadFiles reads files that belong together. An empty format is recognised. Recordings and traces of the ranks of one training are several files. A
// file of another format than a recording is held in memory as it is. No more is read than there is room for.
func ReadFiles(files []File, format string, o Options) (*Imported, error) {
	var of Format
	for i := range files {
		files[i].Room = o.Room
		files[i].Again, files[i].Pages = readAgain(files[i])
		in, err := uncompressed(files[i])
		if err != nil {
			return nil, err
		}
		files[i].In = in
		beginning, err := in.Peek(RecogniseBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, readError(files[i].Name, err)
		}
		f, err := named(format, files[i].Name, beginning)
		if err != nil {
			return nil, err
		}
		if i > 0 && (f.files == nil || of.files == nil) && (of.joins == nil || of.Name != f.Name) {
			return nil, fmt.Errorf("%s is of format %s and %s of format %s; several files at once are recordings of one training", files[0].Name, of.Name, files[i].Name, f.Name)
		}
		of = f
	}
	if of.files != nil {
		return of.readFiles(files, o)
	}
	if len(files) > 1 {
		return of.readRanks(files, o)
	}
	src, err := whole(files[0])
	if err != nil {
		return nil, err
	}
	return of.Read(src, files[0].Name, o)
}

// graphFactor is the memory of a graph over the size of its file, as in package cli.
const graphFactor = 20

// whole reads a file that is held as a whole, and takes room for its graph.
func whole(f File) ([]byte, error) {
	src, err := f.Room.ReadAll(f.In, graphFactor)
	if err != nil {
		return nil, readError(f.Name, err)
	}
	return src, nil
}

// readRanks reads a file for each rank, and joins them.
func (of Format) readRanks(files []File, o Options) (*Imported, error) {
	all := make([]*file, len(files))
	for i := range files {
		src, err := whole(files[i])
		if err != nil {
			return nil, err
		}
		if all[i], err = of.parse(src, files[i].Name, o); err != nil {
			return nil, err
		}
	}
	in := &Imported{Format: of.Name, Took: of.Takes}
	var err error
	if in.Graph, err = of.joins(all); err != nil {
		return nil, err
	}
	for _, f := range all[1:] {
		for _, l := range f.left {
			all[0].leave(l.What, l.Count)
		}
	}
	in.Left = all[0].left
	return in, nil
}

// named finds a format by its name, or recognises it.
func named(format, file string, beginning []byte) (Format, error) {
	if format != "" {
		return FormatByName(format)
	}
	return FormatOf(strings.TrimSuffix(file, ".gz"), beginning)
}

// uncompressed reads what a file of gzip holds, and any other file as it is.
func uncompressed(f File) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(f.In, RecogniseBytes)
	if mark, _ := in.Peek(2); !IsCompressed(mark) {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, readError(f.Name, err)
	}
	return bufio.NewReaderSize(z, RecogniseBytes), nil
}

// readAgain finds out how a file can be read anew and at any place. One that is compressed can be read in its order only.
func readAgain(f File) (again func() (io.Reader, error), pages *io.SectionReader) {
	in, ok := f.In.(io.ReadSeeker)
	if !ok {
		return nil, nil
	}
	again = func() (io.Reader, error) {
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return nil, readError(f.Name, err)
		}
		return uncompressed(File{Name: f.Name, In: in})
	}
	at, ok := f.In.(io.ReaderAt)
	mark := make([]byte, 2)
	if !ok {
		return again, nil
	}
	if _, err := at.ReadAt(mark, 0); err != nil || IsCompressed(mark) {
		return again, nil
	}
	size, err := in.Seek(0, io.SeekEnd)
	if _, back := in.Seek(0, io.SeekStart); err != nil || back != nil {
		return again, nil // whoever reads on sees the error
	}
	return again, io.NewSectionReader(at, 0, size)
}

// IsCompressed recognises files of gzip by their beginning.
func IsCompressed(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte{0x1f, 0x8b}) }

func readError(name string, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the file ends in the middle; it was cut off", name)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%s: damaged: %w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// readFiles reads files of a recording.
func (of Format) readFiles(files []File, o Options) (*Imported, error) {
	if err := of.check(files[0].Name, o); err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(filepath.Base(files[0].Name), ".gz")
	r, err := of.files(files, strings.TrimSuffix(base, filepath.Ext(base)), recording.Options{Step: o.Step, Ranks: o.Ranks, Alone: o.Alone, Extents: o.Extents})
	if err != nil {
		return nil, err
	}
	in := &Imported{Format: of.Name, Graph: r.Graph, Platform: r.Machine, Took: of.Takes, Recorded: true, Notes: r.Notes}
	for _, l := range r.Left {
		in.Left = append(in.Left, LeftOut(l))
	}
	return in, nil
}

// isKineto recognises files of PyTorch's profiler.
func isKineto(_ string, beginning []byte) bool {
	return bytes.Contains(beginning, []byte(`"traceEvents"`)) || bytes.Contains(beginning, []byte(`"deviceProperties"`)) && bytes.Contains(beginning, []byte(`"schemaVersion"`)) ||
		bytes.HasPrefix(bytes.TrimLeft(beginning, " \r\n\t"), []byte("[")) && bytes.Contains(beginning, []byte(`"ph"`))
}
