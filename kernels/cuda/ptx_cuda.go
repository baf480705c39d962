//go:build cuda

package cuda

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

//go:embed *.ptx.gz
var compressed embed.FS

// texts caches the requested texts, by file.
var texts = struct {
	sync.Mutex
	byFile map[string]string
}{byFile: map[string]string{}}

// PTX returns the text of a module for devices of a compute capability, 75 for 7.5: the one
// compiled for the highest capability that the device has. It is decompressed at the first
// request.
func PTX(module string, capability int) (string, error) {
	if capability < 75 {
		return "", fmt.Errorf("CUDA kernels need compute capability 7.5, the device has %d.%d", capability/10, capability%10)
	}
	// make ptx leaves sm_80 out where it would be the same.
	var text string
	err := fs.ErrNotExist
	if capability >= 80 {
		text, err = textOf(module + ".sm_80.ptx.gz")
	}
	if errors.Is(err, fs.ErrNotExist) {
		text, err = textOf(module + ".sm_75.ptx.gz")
	}
	if err != nil {
		return "", fmt.Errorf("no CUDA kernels %q for compute capability %d.%d: %w", module, capability/10, capability%10, err)
	}
	return text, nil
}

// textOf is the text of an embedded file.
func textOf(file string) (string, error) {
	texts.Lock()
	defer texts.Unlock()
	if text, ok := texts.byFile[file]; ok {
		return text, nil
	}
	f, err := compressed.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", fmt.Errorf("decompress %s: %w", file, err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return "", fmt.Errorf("decompress %s: %w", file, err)
	}
	text := string(raw)
	texts.byFile[file] = text
	return text, nil
}
