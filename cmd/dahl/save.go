package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/nn/files"
	"dahl/nn/npz"
	"dahl/nn/weights"
	"dahl/rundir/durable"
)

func isONNX(path string) bool { return strings.EqualFold(filepath.Ext(path), flags.ONNXEnding) }

// checkSave refuses a file for the network or its weights that could not be written, or would be in the directory of the run.
func (w *workload) checkSave(path, dir string) error {
	if path != "" && cli.LiesIn(path, dir) {
		return cli.InputErrorf("--save %s lies in the directory of the run, which keeps weights as %s; name a file elsewhere", path, filepath.Join(dir, record.WeightsFile))
	}
	if path != "" && !slices.Contains(flags.SaveEndings(), strings.ToLower(filepath.Ext(path))) {
		return cli.InputErrorf("--save %s: want a file that ends in %s", path, naming.OneOf(flags.SaveEndings()))
	}
	if isONNX(path) {
		if err := files.CheckONNX(w.Model, w.Options.Type); err != nil {
			return cli.InputErrorf("--save %s: %w", path, err)
		}
	}
	return cli.CheckWritable(path)
}

// save writes the network as an ONNX file, or its weights. An empty path means neither.
func (t *trainer) save(path string) error {
	if path == "" {
		return nil
	}
	return durable.Write(path, func(out io.Writer) error {
		if isONNX(path) {
			return files.WriteONNX(out, t.w.Model, t.w.Options.Type, t.Runner.Bytes)
		}
		return weights.FormatOf(path).Encode(out, t.Weights())
	})
}

// saveOutputs writes the outputs of an evaluation. An empty path means that nobody asks.
func (t *trainer) saveOutputs(path string) error {
	if path == "" {
		return nil
	}
	return durable.Write(path, func(out io.Writer) error { return npz.Encode(out, []npz.Array{t.Outputs()}) })
}
