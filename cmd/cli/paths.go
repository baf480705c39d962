package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Paths are the flags of a program whose values name files or directories, by the flag's name, or by command.flag.
type Paths struct {
	// Read are those that a command reads. The function of a flag finds the path in its value; empty means that the value names no file.
	Read map[string]func(string) string
	// Written are those that it writes, with the endings of files; none: it is a directory.
	Written map[string][]string
	// AddsTo names flags of directories to which a command adds files. The directory may be a run
	// that the command reads.
	AddsTo []string
	// Elsewhere is the flag with which a command does not write to the defaults of others.
	Elsewhere string
	// Kinds are the endings of files that the program or its user makes. No output of one kind replaces a file of another.
	Kinds []string
	// IsName reports whether an argument of a command is no path.
	IsName func(command, arg string) bool
}

// OfCommand is a line of a table of flags, where there is one.
func OfCommand[T any](table map[string]T, cmd *cobra.Command, flag string) (line T, ok bool) {
	if line, ok = table[Words(cmd)+"."+flag]; !ok {
		line, ok = table[flag]
	}
	return line, ok
}

// namedPath is a path as the command line has it.
type namedPath struct {
	text string // "--model m.toml", or an argument
	path string
}

// Check refuses an output that is also an input of the command, or would replace a file in an input directory.
func (p *Paths) Check(cmd *cobra.Command, args []string) error {
	var inputs []namedPath
	for _, arg := range args {
		if !p.IsName(Words(cmd), arg) {
			inputs = append(inputs, namedPath{arg, arg})
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if pathOf, ok := OfCommand(p.Read, cmd, f.Name); ok {
			for _, value := range valuesOf(f) {
				inputs = append(inputs, namedPath{"--" + f.Name + " " + value, pathOf(value)})
			}
		}
	})
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		endings, ok := OfCommand(p.Written, cmd, f.Name)
		if out := f.Value.String(); ok && err == nil && out != "" && !slices.Contains(p.AddsTo, Words(cmd)+"."+f.Name) && (f.Changed || !cmd.Flags().Changed(p.Elsewhere)) {
			err = p.checkOutput(namedPath{"--" + f.Name + " " + out, out}, endings, inputs)
		}
	})
	return err
}

// valuesOf are the values of a flag that has one or several.
func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// checkOutput refuses an output that is one of the inputs, or a file of another kind.
func (p *Paths) checkOutput(out namedPath, endings []string, inputs []namedPath) error {
	info, err := os.Stat(out.path)
	if err != nil {
		return nil // there is nothing whose place it could take
	}
	ext := strings.ToLower(filepath.Ext(out.path))
	for _, in := range inputs {
		switch {
		case in.path == "":
		case sameFile(in.path, out.path):
			return InputErrorf("%s is also %s, which this command reads; name another for what it writes", out.text, in.text)
		case endings != nil && !info.IsDir() && LiesIn(out.path, in.path) && !slices.Contains(endings, ext):
			return InputErrorf("%s is a file of %s, which this command reads; name one that ends in %s", out.text, in.text, endings[0])
		}
	}
	if info.Mode().IsRegular() && endings != nil && !slices.Contains(endings, ext) && slices.Contains(p.Kinds, ext) {
		return InputErrorf("%s is there, and would no longer be what ends in %s; name one that ends in %s", out.text, ext, endings[0])
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// LiesIn reports whether a file is in a directory or below; neither needs to be there.
func LiesIn(file, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(file))
	return err == nil && filepath.IsLocal(rel)
}

// resolved is the absolute path without links, as far as it is there.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}
