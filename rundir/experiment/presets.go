package experiment

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed presets/*.toml
var presets embed.FS

// Presets lists the experiments that ship with dahl.
func Presets() (names []string) {
	entries, err := presets.ReadDir("presets")
	if err != nil {
		panic("experiment: " + err.Error())
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Preset is the text of one.
func Preset(name string) ([]byte, error) {
	src, err := presets.ReadFile(path.Join("presets", name+".toml"))
	if err != nil {
		return nil, fmt.Errorf("%q is no experiment that ships with dahl; those are %s", name, strings.Join(Presets(), ", "))
	}
	return src, nil
}
