// Package platforms holds the machine descriptions that are built into the program: one TOML file
// for each machine, in the form that package platform reads. The comments of each file say where
// its numbers come from.
//
// To add a machine, add a file here. The tests of package platform load every one.
package platforms

import (
	"embed"
	"fmt"
	"strings"
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
		return nil, fmt.Errorf("no built-in platform %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return src, nil
}
