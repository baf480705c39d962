// Package platforms holds the machine descriptions that are built into the program: one TOML file
// for each machine, in the form that package platform reads. The comments of each file say where
// its numbers come from.
//
// To add a machine, add a file here. The tests of package platform load every one.
package platforms

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dahl/naming"
	"dahl/platform"
)

//go:embed *.toml
var files embed.FS

// Names lists the machines in alphabetical order, without the extension of their files.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("platforms: the embedded files cannot be listed: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	return names
}

// Open returns the TOML of a machine by name, with or without the extension.
func Open(name string) ([]byte, error) {
	src, err := files.ReadFile(strings.TrimSuffix(name, ".toml") + ".toml")
	if err != nil {
		return nil, fmt.Errorf("no built-in platform %q; there are %s%s", name, strings.Join(Names(), ", "), naming.DidYouMean(name, Names()))
	}
	return src, nil
}

// Load reads a platform file, or one of these machines by its name.
func Load(name string) (*platform.Platform, error) {
	p, err := platform.LoadWith(name, Open)
	if !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, "platforms/"), ".toml")
	if src, err := Open(short); err == nil {
		return platform.ParseWith(src, "platforms/"+short+".toml", Open)
	}
	return nil, fmt.Errorf("platform %q: no such file, and none of those that ship with dahl: %s%s", name, strings.Join(Names(), ", "), naming.DidYouMean(short, Names()))
}
