package platform

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"dahl/platform/tomlfile"
)

// Load reads a platform file and the model files that it names. An error says
// file, line, key, value and what to write instead.
func Load(path string) (*Platform, error) {
	src, err := tomlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the platform: %w", err)
	}
	return parse(src, path, true)
}

// Parse reads a platform from memory; name stands for the file in errors. A
// platform that names model files must be loaded from a file.
func Parse(src []byte, name string) (*Platform, error) { return parse(src, name, false) }

func parse(src []byte, name string, isFile bool) (*Platform, error) {
	file, top, err := tomlfile.Parse(src, name)
	if err != nil {
		return nil, err
	}
	if _, ok := top.Keys["node"]; ok {
		file.FailAt("node", "", "[[node]]: several machines in one platform are not supported yet; describe one machine per file")
	}
	p, f := &Platform{}, form{in: top}
	modelFiles := p.keys(&f)
	models := tables(&f, "model", &p.Models, (*Model).keys)
	f.done()
	if file.Err != nil {
		return nil, file.Err
	}
	for _, named := range modelFiles {
		if !isFile {
			return nil, fmt.Errorf("%s:%d: models = %q: a model file can only be named in a platform that is loaded from a file", name, file.Line("models"), clip(named))
		}
		if !filepath.IsAbs(named) {
			named = filepath.Join(filepath.Dir(name), named)
		}
		src, err := tomlfile.Read(named)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: models: %w", name, file.Line("models"), err)
		}
		more, top, err := tomlfile.Parse(src, named)
		if err != nil {
			return nil, err
		}
		f := form{in: top}
		models = append(models, tables(&f, "model", &p.Models, (*Model).keys)...)
		if f.done(); more.Err != nil {
			return nil, more.Err
		}
	}
	if fault := p.complete(); fault != nil {
		return nil, fault.in(file, models)
	}
	return p, nil
}

// in gives a fault the line that it stems from. The models may be of other files.
func (f *fault) in(file *tomlfile.File, models []*tomlfile.Table) error {
	path := f.path
	if rest, ok := strings.CutPrefix(path, "model["); ok {
		number, key, _ := strings.Cut(rest, "].")
		if i, err := strconv.Atoi(number); err == nil && i < len(models) {
			file, path = models[i].File, models[i].Join(key)
		}
	}
	file.FailAt(path, f.owner, f.text)
	return file.Err
}
