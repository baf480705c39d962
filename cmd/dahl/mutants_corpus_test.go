package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/npz"
	"dahl/nn/weights"
)

// mutated is a command line whose words and files are changed.
type mutated struct {
	name, line string
	needs      []string // files and directories; their files are changed
	writes     []string // what it may make or change
	sealed     bool     // the first of its needs is a run, or several, whose files are sealed
	result     string   // of a run that goes on or again: its directory
	makes      []string // of a run otherwise: files that follow from it
}

// mutatedCommands reads every kind of file.
var mutatedCommands = []mutated{
	{name: "platform", line: "simulate --platform node.toml --model net.toml --lowering low.toml --batch 3 --steps 2 --out out", needs: []string{"node.toml", "net.toml", "low.toml"}, writes: []string{"out"}},
	{name: "plan", line: "plan --platform node.toml --model net.toml --batch 3 --steps 2 --out out", needs: []string{"node.toml", "net.toml"}, writes: []string{"out"}},
	{name: "objective", line: "plan --platform node.toml --graph small.json --objective energy --out out", needs: []string{"node.toml", "small.json"}, writes: []string{"out"}},
	{name: "json", line: "simulate --platform node.toml --graph net.json --steps 2 --out out", needs: []string{"net.json", "node.toml"}, writes: []string{"out"}},
	{name: "text", line: "simulate --platform node.toml --graph net.txt --steps 2 --out out", needs: []string{"net.txt", "node.toml"}, writes: []string{"out"}},
	{name: "export", line: "graph --model net.toml --lowering low.toml --export x.json", needs: []string{"net.toml", "low.toml"}, writes: []string{"x.json"}},
	{name: "follow", line: "simulate --platform node.toml --model net.toml --data digits --limit 6 --batch 3 --plan plan.json --out out", needs: []string{"plan.json", "node.toml", "net.toml"}, writes: []string{"out"}},
	{name: "replay", line: "execute --platform node.toml --model net.toml --data digits --limit 6 --batch 3 --plan plan.json --out out", needs: []string{"plan.json", "net.toml", "node.toml"}, writes: []string{"out"}},
	{name: "stg", line: "import a.stg --out x.json", needs: []string{"a.stg"}, writes: []string{"x.json"}},
	{name: "dot", line: "import a.dot --out x.json", needs: []string{"a.dot"}, writes: []string{"x.json"}},
	{name: "placement", line: "import a.json --out x.json", needs: []string{"a.json"}, writes: []string{"x.json"}},
	{name: "onnx", line: "execute --model net.onnx --limit 4 --batch 2 --workers 1 --out out", needs: []string{"net.onnx"}, writes: []string{"out"}},
	{name: "evaluate", line: "evaluate w.npz --model net.toml --data synthetic:1x8x8:9:10 --batch 3 --workers 1 --out out", needs: []string{"w.npz", "net.toml"}, writes: []string{"out"}},
	{name: "npz", line: "execute --model net.toml --data digits --limit 6 --batch 3 --workers 1 --init w.npz --save x.npz --out out", needs: []string{"w.npz", "net.toml"}, writes: []string{"out", "x.npz"}},
	{name: "safetensors", line: "execute --model net.toml --data digits --limit 6 --batch 3 --workers 1 --init w.safetensors --save x.safetensors --out out", needs: []string{"w.safetensors", "net.toml"}, writes: []string{"out", "x.safetensors"}},
	{name: "idx", line: "execute --model net.toml --data idx --batch 3 --workers 1 --out out", needs: []string{"idx", "net.toml"}, writes: []string{"out"}},
	{name: "arrays", line: "execute --model net.toml --data set.npz --batch 3 --workers 1 --out out", needs: []string{"set.npz", "net.toml"}, writes: []string{"out"}},
	{name: "characters", line: "execute --model pairs.toml --data a.txt --batch 3 --workers 1 --out out", needs: []string{"a.txt", "pairs.toml"}, writes: []string{"out"}},
	{name: "tokens", line: "execute --model pairs.toml --data numbers --batch 3 --workers 1 --out out", needs: []string{"numbers", "pairs.toml"}, writes: []string{"out"}},
	{name: "generate", line: "generate spoken --tokens 3", needs: []string{"spoken", "pairs.toml"}, sealed: true},
	{name: "cifar", line: "execute --model colour.toml --data cifar --batch 3 --workers 1 --out out", needs: []string{"cifar", "colour.toml"}, writes: []string{"out"}},
	{name: "pictures", line: "execute --model rgb.toml --data pictures --batch 3 --workers 1 --out out", needs: []string{"pictures", "rgb.toml"}, writes: []string{"out"}},
	{name: "labels", line: "execute --model rgb.toml --data labels --batch 3 --workers 1 --out out", needs: []string{"labels", "rgb.toml"}, writes: []string{"out"}},
	{name: "experiment", line: "experiment run grid.toml --out out", needs: []string{"grid.toml", "net.toml", "node.toml"}, writes: []string{"out"}},
	{name: "again", line: "experiment run grid.toml --out grid", needs: []string{"grid", "grid.toml", "net.toml", "node.toml"}, writes: []string{"grid"}, sealed: true, makes: []string{"grid/results.csv"}},
	{name: "cells", line: "experiment verify grid", needs: []string{"grid", "net.toml", "node.toml"}, sealed: true},
	{name: "calibration", line: "calibrate --model tiny.toml --workers 1 --batch 3 --time 1ms --variant ref --out here.toml", needs: []string{"here.toml", "tiny.toml"}, writes: []string{"here.toml"}},
	{name: "resume", line: "execute --resume cut", needs: []string{"cut", "net.toml"}, writes: []string{"cut"}, sealed: true, result: "cut"},
	{name: "longer", line: "execute --resume run --epochs 3", needs: []string{"run", "net.toml"}, writes: []string{"run"}, sealed: true, result: "run"},
	{name: "rerun", line: "rerun run --out again", needs: []string{"run", "net.toml"}, writes: []string{"again"}, sealed: true, result: "again"},
	{name: "verify", line: "verify run", needs: []string{"run"}, sealed: true},
	{name: "compare", line: "compare run", needs: []string{"run"}, sealed: true},
	{name: "report", line: "report run --out page.html", needs: []string{"run"}, writes: []string{"page.html", "run"}, sealed: true, makes: []string{"page.html"}},
	{name: "plot", line: "plot run gantt memory", needs: []string{"run"}, writes: []string{"run"}, sealed: true, makes: []string{"run/gantt.svg", "run/memory.svg"}},
	{name: "confusion", line: "plot seen confusion", needs: []string{"seen"}, writes: []string{"seen"}, sealed: true, makes: []string{"seen/confusion.svg"}},
	{name: "front", line: "plot best front", needs: []string{"best"}, writes: []string{"best"}, sealed: true, makes: []string{"best/front.svg"}},
	{name: "trace", line: "trace run", needs: []string{"run"}, writes: []string{"run"}, sealed: true, makes: []string{"run/trace.json"}},
	{name: "kernels", line: "kernels run", needs: []string{"run"}, sealed: true},
}

// colourNetwork is a model of coloured pictures of some size.
func colourNetwork(size string) string {
	return strings.ReplaceAll(tinyNetwork, "[1, 8, 8]", "[3, "+size+"]")
}

// makeCorpus makes the files that all commands read, in the present directory.
func makeCorpus(t *testing.T) {
	t.Helper()
	writeTestFile(t, "node.toml", emulatedNode)
	writeTestFile(t, "net.toml", smallNetwork)
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "pairs.toml", sequenceNetwork)
	writeTestFile(t, "a.txt", someText)
	writeTestFile(t, "numbers/train.bin", strings.Repeat("\x03\x00\x0c\x00\x00\x00", 20))
	writeTestFile(t, "numbers/val.bin", strings.Repeat("\x03\x00\x0c\x00", 6))
	writeTestFile(t, "colour.toml", colourNetwork("32, 32"))
	writeTestFile(t, "rgb.toml", colourNetwork("8, 8"))
	writeTestFile(t, "a.stg", "3\n0 1 0\n1 4 1 0\n2 2 1 0\n3 3 2 1 2\n4 0 1 3\n# the end\n")
	writeTestFile(t, "a.dot", "digraph G {\n  a [size=\"1e9\"];\n  b [size=\"2e9\", label=\"x\"];\n  a -> b [size=\"1e6\"];\n  b -> c;\n  c [size=\"5e8\"];\n}\n")
	writeTestFile(t, "a.json", `{"maxSizePerFPGA": 1e9, "maxFPGAs": 1, "maxCPUs": 1, "nodes": [
 {"id": 1, "name": "fc", "supportedOnFpga": true, "cpuLatency": 2.5, "fpgaLatency": 0.25, "isBackwardNode": false, "colorClass": 3, "size": 60},
 {"id": 2, "name": "relu", "supportedOnFpga": true, "cpuLatency": 1, "fpgaLatency": 0.5, "size": 10}],
 "edges": [{"sourceId": 1, "destId": 2, "cost": 0.125}]}`)
	writeTestFile(t, "small.json", `{"format": "dahl-graph 1", "buffers": [{"name": "x", "shape": [70], "type": "uint8"}],
 "tasks": [{"name": "a", "writes": ["x"], "ns": {"cpu": 5000, "emulated": 3000}}, {"name": "b", "reads": ["x"], "ns": {"cpu": 2000, "emulated": 3000}}]}`)
	writeTestFile(t, "grid.toml", "name = \"grid\"\n[run]\ncommand = \"simulate\"\nplatform = \"node.toml\"\nmodel = \"net.toml\"\nsteps = 2\n[grid]\nbatch = [3]\n[[case]]\nname = \"a\"\nseed = 3\n")
	makeImages(t)
	for _, line := range []string{
		"graph --model net.toml --batch 3 --export low.toml", "graph --model net.toml --batch 3 --export net.json", "graph --model net.toml --batch 3 --export net.txt",
		"experiment run grid.toml --out grid", "calibrate --model tiny.toml --workers 1 --batch 3 --time 1ms --variant ref --out here.toml",
		"plan --platform node.toml --model net.toml --data digits --limit 6 --batch 3 --out planned",
		"execute --model pairs.toml --data a.txt --limit 6 --batch 3 --workers 1 --out spoken",
		"execute --model net.toml --data digits --limit 6 --batch 3 --workers 1 --epochs 2 --seed 7 --checkpoint every=1steps --save w.npz --out run",
		"evaluate run --out seen", "plan --platform node.toml --graph small.json --objective energy --out best",
	} {
		mustRun(t, strings.Fields(line)...)
	}
	var b bytes.Buffer
	must.Do(t, weights.FormatOf("w.safetensors").Encode(&b, must.Get(npz.Read("w.npz", nil))(t)))
	writeTestFile(t, "w.safetensors", b.String())
	cutAfter(t, "3", strings.Fields("execute --model net.toml --data digits --limit 6 --batch 3 --workers 1 --epochs 3 --seed 7 --checkpoint every=1steps --out cut")...)
	must.Do(t, os.Rename("planned/plan.json", "plan.json"))
}

// makeImages makes a data set of each kind, of a few samples.
func makeImages(t *testing.T) {
	t.Helper()
	pixel := func(i, x, y int) byte { return byte(i*37 + x*11 + y*5) }
	for split, n := range map[string]int{"train": 7, "t10k": 3} {
		samples, labels := bytes.NewBuffer([]byte{0, 0, 8, 3}), bytes.NewBuffer([]byte{0, 0, 8, 1})
		for _, v := range []int{n, 8, 8} {
			samples.Write(binary.BigEndian.AppendUint32(nil, uint32(v)))
		}
		labels.Write(binary.BigEndian.AppendUint32(nil, uint32(n)))
		for i := range n {
			labels.WriteByte(byte(i % 10))
			for p := range 64 {
				samples.WriteByte(pixel(i, p%8, p/8))
			}
		}
		writeTestFile(t, "idx/"+split+"-images-idx3-ubyte", samples.String())
		writeTestFile(t, "idx/"+split+"-labels-idx1-ubyte", labels.String())
	}
	must.Do(t, npz.Write("set.npz", []npz.Array{
		npz.NewArray("x", dag.Float64, []int{4, 1, 8, 8}, make([]float64, 256)), npz.NewArray("y", dag.Int64, []int{4}, []float64{1, 0, 3, 2})}))
	for name, n := range map[string]int{"data_batch_1.bin": 6, "test_batch.bin": 2} {
		var records bytes.Buffer
		for i := range n {
			records.WriteByte(byte(i))
			for p := range 3 * 32 * 32 {
				records.WriteByte(pixel(i, p%32, p/32))
			}
		}
		writeTestFile(t, "cifar/"+name, records.String())
	}
	table := "image,label\n"
	for i := range 6 {
		m := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for p := range 64 {
			v := pixel(i, p%8, p/8)
			m.Set(p%8, p/8, color.RGBA{v, v / 2, 255 - v, 255})
		}
		var asPNG, asJPEG bytes.Buffer
		must.Do(t, png.Encode(&asPNG, m))
		must.Do(t, jpeg.Encode(&asJPEG, m, nil))
		name := string(rune('a' + i))
		writeTestFile(t, filepath.Join("pictures", []string{"cat", "dog"}[i%2], name+".png"), asPNG.String())
		writeTestFile(t, filepath.Join("labels", "images", name+".jpg"), asJPEG.String())
		table += name + ".jpg," + []string{"cat", "dog"}[i%2] + "\n"
	}
	writeTestFile(t, "labels/labels.csv", table)
}
