package graphs

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"dahl/dag"
	"dahl/exchange"
	"dahl/exchange/recording"
	"dahl/platform"
	"dahl/rundir"
	"dahl/train/budget"
)

// Read reads the task graph of a file and expands its reductions. The tasks of a recording get the times that they would take on the
// platform, and rescaled says so. It is empty where they keep theirs.
func Read(path string, p *platform.Platform) (g *dag.Graph, rescaled string, err error) {
	in, err := rundir.ReadAs(path, readGraph)
	if err != nil {
		return nil, "", err
	}
	if g = in.Graph; in.Platform != nil {
		var done recording.Rescaled
		if g, done, err = recording.Rescale(g, in.Platform, p); err != nil {
			return nil, "", err
		}
		if done.Changed {
			rescaled = done.String()
		}
	}
	g, err = dag.Expand(g)
	return g, rescaled, err
}

// room is the memory left for the contents of files of others.
func room() *recording.Room { return recording.NewRoom(budget.Available().Bytes) }

// readGraph reads a task graph in a form of dahl, or in one of others that the file shows. The platform is the recorded machine, if the
// graph is a recording.
func readGraph(r io.Reader, name string) (exchange.Imported, error) {
	in := bufio.NewReaderSize(r, exchange.RecogniseBytes)
	beginning, _ := in.Peek(exchange.RecogniseBytes) // whoever reads on sees the error
	if _, err := exchange.FormatOf(name, beginning); err == nil || exchange.IsCompressed(beginning) {
		read, err := exchange.ReadFiles([]exchange.File{{Name: name, In: in}}, "", exchange.Options{Room: room()})
		switch {
		case err != nil:
			return exchange.Imported{}, err
		case read.Graph == nil:
			return exchange.Imported{}, fmt.Errorf("%s describes a machine and no tasks; make a platform file of it by dahl import", name)
		case !read.Recorded:
			read.Platform = nil
		}
		return *read, nil
	}
	if strings.EqualFold(filepath.Ext(name), ".txt") {
		g, err := dag.ParseText(in, name)
		return exchange.Imported{Graph: g}, err
	}
	g, err := dag.ReadJSON(in, name)
	if err != nil || g.RecordedOn == "" {
		return exchange.Imported{Graph: g}, err
	}
	if filepath.Base(g.RecordedOn) != g.RecordedOn {
		return exchange.Imported{}, fmt.Errorf("%s: recorded_on is %q; write the name of a platform file beside the graph, without directories", name, g.RecordedOn)
	}
	p, err := platform.Load(filepath.Join(filepath.Dir(name), g.RecordedOn))
	if err != nil {
		err = fmt.Errorf("%s was recorded on another machine: %w", name, err)
	}
	return exchange.Imported{Graph: g, Platform: p}, err
}
