package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the Makefile at link time; a build without it asks the Go tool's stamp.
var version, commit, dirty string

// Build identifies the program in manifests.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Dirty   bool   `json:"dirty"`
}

// ThisBuild is the one that runs.
func ThisBuild() Build {
	b := Build{Version: version, Commit: commit, Dirty: dirty == "true"}
	info, ok := debug.ReadBuildInfo()
	if b.Version == "" && ok {
		b.Version = info.Main.Version
	}
	for i := 0; b.Commit == "" && ok && i < len(info.Settings); i++ {
		switch s := info.Settings[i]; s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}

// Version is the text of --version.
func Version() string {
	b := ThisBuild()
	mark := ""
	if b.Dirty {
		mark = ", with uncommitted changes"
	}
	return fmt.Sprintf("%s (commit %s%s)", b.Version, b.Commit, mark)
}

// Host identifies the machine in manifests.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	Go   string `json:"go"`
	CPUs int    `json:"cpus"`
}

// ThisHost is the one on which the program runs.
func ThisHost() Host {
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), CPUs: runtime.NumCPU()}
}
