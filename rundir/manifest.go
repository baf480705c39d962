package rundir

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Format is the format of manifests, and the only one that this package reads.
const Format = "dahl-run 2"

// family is how the formats of all versions begin.
const family = "dahl-run "

// versionError says that a run was made by another version of dahl.
type versionError struct{ format string }

func (e versionError) Error() string {
	if e.format == family+"1" { // whose files have no hashes
		return "it is a run of an older dahl, which this one does not read: repeat it, and remove it or name another directory"
	}
	return fmt.Sprintf("it is a run of another dahl, of format %q; this one reads %q", e.format, Format)
}

// damageError says that a manifest is not as it was sealed.
type damageError struct {
	path  string
	cause error
}

func (e damageError) Error() string {
	todo := "take the run from a copy, or remove it and repeat it"
	if dir := filepath.Dir(e.path); filepath.Base(dir) == stagingName {
		todo = fmt.Sprintf("remove %s, and begin the training anew", dir)
	}
	return fmt.Sprintf("damaged: %s is not as dahl sealed it (%v): %s", e.path, e.cause, todo)
}

// errSeal is the cause where a manifest can be read.
var errSeal = errors.New("its hash is another")

// ManifestName is the file that describes a run. A directory is a run if it holds one.
const ManifestName = "manifest.json"

// Head has the members of every manifest. It is embedded, so that the object stays flat.
type Head struct {
	Format   string `json:"format"`
	Complete bool   `json:"complete"` // false: still running, interrupted, failed or diverged
	// Keep says that no other run may replace this one in the stage, once it is interrupted.
	Keep  bool   `json:"keep,omitempty"`
	Files []File `json:"files"`
	// Seal is the hash of the manifest as it is written, with an empty seal. Whoever reads a manifest compares it.
	Seal string `json:"seal"`
}

// File is a file of a run as it was written. Its name has slashes where it lies deeper.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Manifest is a struct that embeds [Head].
type Manifest interface{ head() *Head }

func (h *Head) head() *Head { return h }

// Lists reports whether a file is one of the run.
func (h *Head) Lists(name string) bool { return h.index(name) >= 0 }

func (h *Head) index(name string) int {
	return slices.IndexFunc(h.Files, func(f File) bool { return f.Name == name })
}

// set adds a file, or replaces the file of the same name.
func (h *Head) set(f File) {
	if i := h.index(f.Name); i >= 0 {
		h.Files[i] = f
		return
	}
	h.Files = append(h.Files, f)
}

// encode writes a manifest with its seal.
func encode(m Manifest) ([]byte, error) {
	h := m.head()
	h.Format, h.Seal = Format, ""
	if h.Files == nil {
		h.Files = []File{}
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	h.Seal = fmt.Sprintf("%x", sha256.Sum256(data))
	return bytes.Replace(data, seal(""), seal(h.Seal), 1), nil
}

// seal is how a manifest says its seal. No text in it reads so, since quotes are escaped there.
func seal(hash string) []byte { return fmt.Appendf(nil, `"seal": %q`, hash) }

// isSealed reports whether a manifest with a seal is as it was written.
func isSealed(data []byte, with string) bool {
	return with == fmt.Sprintf("%x", sha256.Sum256(bytes.Replace(data, seal(with), seal(""), 1)))
}

// read reads a manifest into m, which may be a Head alone. Every manifest is read here, so that one that
// is not as it was sealed is nowhere believed.
func read(dir string, m Manifest) error {
	path := filepath.Join(dir, ManifestName)
	data, err := ReadAs(path, All)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a run of dahl: %w", dir, err)
	}
	if err != nil {
		return fmt.Errorf("reading a run: %w", err)
	}
	var is struct{ Format, Seal string }
	err = json.Unmarshal(data, &is)
	switch {
	case err == nil && is.Format != Format && strings.HasPrefix(is.Format, family):
		return fmt.Errorf("%s: %w", dir, versionError{is.Format})
	case err != nil && bytes.Contains(data, []byte(family)):
		return damageError{path, err}
	case err == nil && is.Format != Format && is.Seal == "":
		err = fmt.Errorf("format %q, want %q", is.Format, Format)
	case err == nil && !isSealed(data, is.Seal):
		return damageError{path, errSeal}
	case err == nil:
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// isRun reports whether a directory holds a run, finished or not.
func isRun(dir string) bool {
	return slices.ContainsFunc([]string{"", stagingName, commitName}, func(sub string) bool {
		var h Head
		err := read(filepath.Join(dir, sub), &h)
		return err == nil || errors.As(err, new(versionError)) || errors.As(err, new(damageError))
	})
}

// Within finds the run directory that a path lies in. The path itself may be one, or missing.
func Within(path string) (dir string, ok bool) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil {
		at = filepath.Join(parent, filepath.Base(at))
	}
	for parent := filepath.Dir(at); parent != at; parent = filepath.Dir(at) {
		if at = parent; isRun(at) {
			return at, true
		}
	}
	return "", false
}

// hashFile reads a file to its end.
func hashFile(r io.Reader, name string) (File, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return File{Name: name, Bytes: n, SHA256: fmt.Sprintf("%x", h.Sum(nil))}, err
}
