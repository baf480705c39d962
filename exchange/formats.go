package exchange

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dahl/dag"
	"dahl/naming"
)

// DefaultUnit is the unit of times where a file has none. It is long compared with the costs of
// starting a task on shipped platforms.
const DefaultUnit = time.Millisecond

// Format is how others write task graphs.
type Format struct {
	Name   string
	Doc    string // what it is
	Takes  string // its attributes and their meaning here
	Source string // where it is described

	// A file is recognised by one of Extensions at the end of its name, together with Mark in its text.
	Extensions []string
	Mark       string

	read func(*file, []byte) error // fills the file
}

var formats = []Format{
	{
		Name: "stg", Doc: "the Standard Task Graph Set, with or without communication costs",
		Takes:  "processing times as the time on every device, communication costs as bytes at 1 GB/s",
		Source: "https://www.kasahara.cs.waseda.ac.jp/schedule/", Extensions: []string{".stg"}, read: (*file).readSTG,
	},
	{
		Name: "dot", Doc: "Graphviz, with the size of DAGGEN and SimGrid or a weight at each node",
		Takes:  "size of nodes as flop and of edges as bytes, or weight of nodes as the time on every device and of edges as bytes at 1 GB/s",
		Source: "https://github.com/frs69wq/daggen", Extensions: []string{".dot", ".gv"}, read: (*file).readDOT,
	},
	{
		Name: "placement", Doc: "device placement of Tarnawski et al., NeurIPS 2020",
		Takes:  "latencies as times in ms on processors and on other devices, cost in ms as bytes at 1 GB/s once for all readers, size as memory, colorClass as colocation",
		Source: "https://github.com/msr-fiddle/dnn-partitioning", Extensions: []string{".json"}, Mark: `"fpgaLatency"`, read: (*file).readPlacement,
	},
}

// Formats lists the formats that can be read.
func Formats() []Format { return slices.Clone(formats) }

// FormatByName finds a format; the error names all.
func FormatByName(name string) (Format, error) {
	return naming.ByName("format", name, formats, func(f Format) string { return f.Name })
}

// FormatOf recognises the format of a file.
func FormatOf(name string, src []byte) (Format, error) {
	extension := strings.ToLower(filepath.Ext(name))
	var known []string
	for _, f := range formats {
		if slices.Contains(f.Extensions, extension) && bytes.Contains(src, []byte(f.Mark)) {
			return f, nil
		}
		for _, e := range f.Extensions {
			known = append(known, e+" ("+f.Name+")")
		}
	}
	return Format{}, fmt.Errorf("%s is of no format that can be imported; its name ends in none of %s, or its text is not of that format", name, strings.Join(known, ", "))
}

// Read reads a graph in this format; the graph is named as the file. It also names the attributes that
// it used, and their meaning. A unit of 0 stands for [DefaultUnit] where the file has none of its own,
// and has to be 0 where it has. Errors are one line, "name:line: the mistake; the remedy".
func (of Format) Read(src []byte, name string, unit time.Duration) (g *dag.Graph, took string, err error) {
	f := &file{name: name, unit: unit, took: of.Takes}
	src = bytes.TrimPrefix(src, []byte(dag.Mark))
	if !utf8.Valid(src) {
		valid := bytes.TrimLeftFunc(src, func(r rune) bool { return r != utf8.RuneError })
		return nil, "", f.errorf(1+bytes.Count(src[:len(src)-len(valid)], []byte{'\n'}), "not UTF-8 text")
	}
	if err := of.read(f, src); err != nil {
		return nil, "", err
	}
	g, err = f.graph()
	return g, f.took, err
}
