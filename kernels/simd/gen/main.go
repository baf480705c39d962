// Command gen writes the assembly of package simd and its Go declarations.
//
//	go run . [-dir ..]
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// files is the table of outputs: name_amd64.s with declarations in name_amd64.go.
var files = []struct {
	name  string
	write func(c *build.Context)
}{
	{"product_avx2", productAVX2},
	{"product_avx512", productAVX512},
	{"peak_avx2", peakAVX2},
	{"peak_avx512", peakAVX512},
	{"dot_avx2", dotAVX2},
	{"dot_avx512", dotAVX512},
	{"pool_avx2", poolAVX2},
	{"pool_avx512", poolAVX512},
	{"narrow_avx2", narrowAVX2},
	{"narrow_avx512", narrowAVX512},
	{"elementwise_avx2", elementwiseAVX2},
	{"elementwise_avx512", elementwiseAVX512},
	{"function_avx2", functionAVX2},
	{"function_avx512", functionAVX512},
	{"softmax_avx2", softmaxAVX2},
	{"softmax_avx512", softmaxAVX512},
	{"columns_avx2", columnsAVX2},
	{"columns_avx512", columnsAVX512},
	{"channels_avx2", channelsAVX2},
	{"channels_avx512", channelsAVX512},
	{"pixels_avx2", pixelsAVX2},
	{"pixels_avx512", pixelsAVX512},
	{"transpose_avx2", transposeAVX2},
	{"transpose_avx512", transposeAVX512},
	{"winograd_avx2", winogradAVX2},
	{"winograd_avx512", winogradAVX512},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	dir := flag.String("dir", "..", "where the files go")
	flag.Parse()
	for _, f := range files {
		if err := generate(filepath.Join(*dir, f.name+"_amd64"), f.write); err != nil {
			log.Fatalf("%s: %v", f.name, err)
		}
	}
}

// generate writes path.s and path.go.
func generate(path string, write func(c *build.Context)) error {
	c := build.NewContext()
	write(c)
	f, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return err
	}
	config := printer.Config{Name: "gen", Pkg: "simd"}
	for ext, p := range map[string]printer.Printer{".s": printer.NewGoAsm(config), ".go": printer.NewStubs(config)} {
		text, err := p.Print(f)
		if err != nil {
			return fmt.Errorf("print %s: %w", ext, err)
		}
		if err := os.WriteFile(path+ext, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
