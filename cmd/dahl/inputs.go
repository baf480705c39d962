package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"strings"

	"dahl/cmd/cli"
	"dahl/nn"
)

// inputFiles are the files that the options name, except the platform, of which
// a run directory keeps a copy, and the data.
func (o *options) inputFiles() []string {
	var files []string
	if cli.IsModelFile(o.Model) {
		files = append(files, o.Model)
	}
	if o.Lowering != "" && o.Lowering != bestTiles {
		files = append(files, o.Lowering)
	}
	for _, f := range []string{o.Graph, o.Plan, o.Init} {
		if f != "" && !strings.HasPrefix(f, uniformInit) {
			files = append(files, f)
		}
	}
	return files
}

// hashInputs identifies the input files, so that rerun can tell that one changed.
func hashInputs(o *options) ([]identity, error) {
	var ids []identity
	for _, path := range o.inputFiles() {
		sum, err := hashFile(path)
		if err != nil {
			return nil, err
		}
		ids = append(ids, identity{path, sum})
	}
	return ids, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", cli.AsInput(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", cli.AsInput(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashData identifies images and labels of both splits; test may be nil.
func hashData(train, test *nn.Dataset) *identity {
	h := sha256.New()
	for _, d := range []*nn.Dataset{train, test} {
		if d == nil {
			continue
		}
		for _, extent := range append(d.Shape[:], d.Len(), d.Classes) {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(extent))
			h.Write(b[:])
		}
		h.Write(d.Images)
		for _, label := range d.Labels {
			var b [4]byte
			binary.LittleEndian.PutUint32(b[:], uint32(label))
			h.Write(b[:])
		}
	}
	return &identity{train.Name, hex.EncodeToString(h.Sum(nil))}
}
