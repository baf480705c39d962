package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"dahl/platform/tomlfile"
)

// Load reads a platform file, the model files that it names and the platforms of its nodes. An
// error says file, line, key, value and what to write instead.
func Load(path string) (*Platform, error) { return LoadWith(path, nil) }

// LoadWith is Load, where a node may also be a platform that ships with the program. ships gives
// its file by name.
func LoadWith(path string, ships func(name string) ([]byte, error)) (*Platform, error) {
	return load(path, func(named string) (*Platform, error) {
		if !filepath.IsAbs(named) {
			named = filepath.Join(filepath.Dir(path), named)
		}
		p, err := load(named, oneMachine)
		if errors.Is(err, fs.ErrNotExist) && ships != nil {
			return shipped(filepath.Base(named), ships)
		}
		return p, err
	})
}

func load(path string, open opener) (*Platform, error) {
	src, err := tomlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the platform: %w", err)
	}
	return parse(src, path, true, open)
}

// Parse reads a platform from memory; name stands for the file in errors. A
// platform that names other files must be loaded from a file.
func Parse(src []byte, name string) (*Platform, error) { return ParseWith(src, name, nil) }

// ParseWith is Parse, where a node may be a platform that ships with the program.
func ParseWith(src []byte, name string, ships func(name string) ([]byte, error)) (*Platform, error) {
	return parse(src, name, false, func(named string) (*Platform, error) {
		if ships == nil {
			return nil, errors.New("other files can only be named in a platform that is loaded from a file")
		}
		return shipped(named, ships)
	})
}

func shipped(name string, ships func(name string) ([]byte, error)) (*Platform, error) {
	src, err := ships(name)
	if err != nil {
		return nil, err
	}
	return parse(src, name, false, oneMachine)
}

// oneMachine opens the nodes of a node: there are none.
func oneMachine(string) (*Platform, error) {
	return nil, errors.New("a node is one machine, and its platform has no nodes")
}

func parse(src []byte, name string, isFile bool, open opener) (*Platform, error) {
	file, top, err := tomlfile.Parse(src, name)
	if err != nil {
		return nil, err
	}
	p, f := &Platform{}, form{in: top}
	modelFiles := p.keys(&f, open)
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
		fault.path = f.tableOf(fault.path)
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
