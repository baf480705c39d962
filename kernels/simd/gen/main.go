// Command gen writes the assembly of package simd and its Go declarations.
//
//	go run . [-dir ..]
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// families is the table of outputs: name_SET_amd64.s for both instruction sets, with loops for both element types.
var families = []struct {
	name  string
	write func(m machine)
}{
	{"product", product}, {"peak", peak}, {"dot", dot}, {"pool", pool}, {"narrow", narrow},
	{"elementwise", elementwise}, {"function", function}, {"softmax", softmax}, {"columns", columns},
	{"channels", channels}, {"depthwise", depthwise}, {"rows", rows}, {"transpose", transpose}, {"winograd", winograd},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	dir := flag.String("dir", "..", "where the files go")
	flag.Parse()
	for _, set := range []struct {
		name string
		wide bool
	}{{"avx2", false}, {"avx512", true}} {
		var functions ir.File
		for _, l := range families {
			c := build.NewContext()
			for _, f64 := range []bool{false, true} {
				l.write(machine{c, set.wide, f64})
			}
			f := compiled(c, l.name)
			functions.Sections = append(functions.Sections, f.Sections...)
			write(filepath.Join(*dir, l.name+"_"+set.name+"_amd64.s"), printer.NewGoAsm(config), f)
		}
		// Declarations of all functions of an instruction set are one file.
		write(filepath.Join(*dir, set.name+"_amd64.go"), printer.NewStubs(config), &functions)
	}
	for name, empty := range map[string]bool{"forms_amd64.go": false, "forms_other.go": true} {
		if err := writeForms(filepath.Join(*dir, name), empty); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}

var config = printer.Config{Name: "gen", Pkg: "simd"}

// compiled is the assembly of a family of loops.
func compiled(c *build.Context, name string) *ir.File {
	f, err := c.Result()
	if err == nil {
		err = pass.Compile.Execute(f)
	}
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	return f
}

// write writes a file.
func write(path string, p printer.Printer, f *ir.File) {
	text, err := p.Print(f)
	if err == nil {
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		log.Fatalf("%s: %v", path, err)
	}
}
