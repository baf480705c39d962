package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"dahl/cmd/cli"
	"dahl/nn"
)

// hashInputs identifies the files that the options name, so that rerun can tell that one
// changed: except the platform, of which a run directory keeps a copy, and the data.
func hashInputs(o *options) ([]identity, error) {
	var ids []identity
	for _, in := range []struct {
		path   string
		noFile bool
	}{{o.Model, !cli.IsModelFile(o.Model)}, {o.Lowering, o.Lowering == bestTiles}, {o.Graph, false}, {o.Plan, false}, {o.Init, strings.HasPrefix(o.Init, uniformInit)}} {
		if in.path == "" || in.noFile {
			continue
		}
		sum, err := hashFile(in.path)
		if err != nil {
			return nil, err
		}
		ids = append(ids, identity{in.path, sum})
	}
	return ids, nil
}

func hashFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(data)), cli.AsInput(err)
}

// hashData identifies images and labels of both splits; test may be nil.
func hashData(train, test *nn.Dataset) *identity {
	h := sha256.New()
	for _, d := range []*nn.Dataset{train, test} {
		if d == nil {
			continue
		}
		extents := []int64{int64(d.Shape[0]), int64(d.Shape[1]), int64(d.Shape[2]), int64(d.Len()), int64(d.Classes)}
		for _, part := range []any{extents, d.Images, d.Labels} {
			cli.Must(binary.Write(h, binary.LittleEndian, part))
		}
	}
	return &identity{train.Name, fmt.Sprintf("%x", h.Sum(nil))}
}
