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

// loops is the table of outputs: name_SET_amd64.s for both instruction sets.
var loops = []struct {
	name         string
	avx2, avx512 func(c *build.Context)
}{
	{"product", productAVX2, productAVX512},
	{"peak", peakAVX2, peakAVX512},
	{"dot", dotAVX2, dotAVX512},
	{"pool", poolAVX2, poolAVX512},
	{"narrow", narrowAVX2, narrowAVX512},
	{"elementwise", elementwiseAVX2, elementwiseAVX512},
	{"function", functionAVX2, functionAVX512},
	{"softmax", softmaxAVX2, softmaxAVX512},
	{"columns", columnsAVX2, columnsAVX512},
	{"channels", channelsAVX2, channelsAVX512},
	{"pixels", pixelsAVX2, pixelsAVX512},
	{"transpose", transposeAVX2, transposeAVX512},
	{"winograd", winogradAVX2, winogradAVX512},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	dir := flag.String("dir", "..", "where the files go")
	flag.Parse()
	var avx2, avx512 ir.File
	for _, l := range loops {
		generate(&avx2, filepath.Join(*dir, l.name+"_avx2_amd64.s"), l.avx2)
		generate(&avx512, filepath.Join(*dir, l.name+"_avx512_amd64.s"), l.avx512)
	}
	// Declarations of all functions of an instruction set are one file.
	write(filepath.Join(*dir, "avx2_amd64.go"), printer.NewStubs(config), &avx2)
	write(filepath.Join(*dir, "avx512_amd64.go"), printer.NewStubs(config), &avx512)
}

var config = printer.Config{Name: "gen", Pkg: "simd"}

// generate writes a file of assembly, and adds its functions to those of the instruction set.
func generate(set *ir.File, path string, body func(c *build.Context)) {
	c := build.NewContext()
	body(c)
	f, err := c.Result()
	if err == nil {
		err = pass.Compile.Execute(f)
	}
	if err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	set.Sections = append(set.Sections, f.Sections...)
	write(path, printer.NewGoAsm(config), f)
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
