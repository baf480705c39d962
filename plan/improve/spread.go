package improve

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// spread is what moves between memories. A piece is what a task writes of one storage for the same readers;
// it goes to each memory where some of them are, once.
type spread struct {
	platform *platform.Platform
	memories int
	pieces   []piece
	written  [][]int32 // by writer, and one past the last for what was there: pieces
	reads    [][]read  // by task
	engines  []engines // by memory
	ways     [][]way   // by memories, from and to
	host     platform.MemoryID
}

type piece struct {
	writer  int32 // one past the last task: it was there before the run
	storage dag.BufferID
	bytes   int64
	home    platform.MemoryID
	readers []read // the tasks, in place of the pieces
}

// read is a piece that a task reads, or a task that reads a piece: of what the same step wrote, or the one
// before.
type read struct {
	of   int32
	back int32
}

// engines are the copy engines of a memory; 0: there is no limit.
type engines struct{ in, out int }

func newSpread(p *platform.Platform, g *dag.Graph) *spread {
	n := len(g.Tasks)
	s := &spread{platform: p, memories: len(p.Memories), host: p.HostMemory(), written: make([][]int32, n+1), reads: make([][]read, n)}
	for m := range p.Memories {
		in, out := 0, 0
		if platform.MemoryID(m) != p.HostMemory() {
			in, out = p.CopyEngines(platform.MemoryID(m))
		}
		s.engines = append(s.engines, engines{in, out})
	}
	s.addPieces(g)
	for from := range platform.MemoryID(s.memories) {
		row := make([]way, s.memories)
		for to := range row {
			row[to] = newWay(p, from, platform.MemoryID(to))
		}
		s.ways = append(s.ways, row)
	}
	return s
}

// share is a link, by direction, and what a byte keeps it busy for.
type share struct {
	link int32
	ns   float64
}

// way is how copies go from one memory to another.
type way struct {
	platform   *platform.Platform
	from, to   platform.MemoryID
	lanes      int32   // of engines, as in copies; -1: it needs none
	passesHost bool    // it goes by way of the host's memory
	joules     float64 // that a byte draws beside what idle links do
	latency    int64
	shares     []share // links whose bandwidth copies share
}

func (w *way) takes(bytes int64) int64 { return int64(w.platform.RouteTime(w.from, w.to, bytes)) }

func newWay(p *platform.Platform, from, to platform.MemoryID) way {
	w := way{platform: p, from: from, to: to, lanes: -1, passesHost: p.Passes(from, to, p.HostMemory()), joules: p.RouteJoulesPerByte(from, to), latency: int64(p.RouteTime(from, to, 0))}
	switch in, out := p.EnginesTaken(from, to); {
	case from == to:
	case in:
		w.lanes = 2 * int32(to)
	case out:
		w.lanes = 2*int32(from) + 1
	}
	for _, use := range p.LinkUses(from, to) {
		if l := &p.Links[use.Link]; l.Sharing != platform.Fatpipe {
			w.shares = append(w.shares, share{2*int32(use.Link) + use.Direction, float64(use.Times) * 1e9 / l.BandwidthBytesPerSec})
		}
	}
	return w
}

// addPieces puts the atoms together that one task writes in one storage for the same readers.
func (s *spread) addPieces(g *dag.Graph) {
	type version struct{ writer, atom int32 }
	readers, order := map[version][]read{}, []version(nil)
	place.EachReading(g, func(writer int32, reader dag.TaskID, atom int32, next bool) {
		storage := g.AtomStorage(dag.AtomID(atom))
		if int(writer) == len(g.Tasks) && !g.WrittenStorages()[storage] && g.Buffers[storage].Home == "" {
			return // an input, which is wherever it is needed
		}
		of := version{writer, atom}
		if readers[of] == nil {
			order = append(order, of)
		}
		is := read{of: int32(reader)}
		if next {
			is.back = 1
		}
		if !slices.Contains(readers[of], is) {
			readers[of] = append(readers[of], is)
		}
	})
	slices.SortStableFunc(order, func(a, b version) int { return cmp.Or(cmp.Compare(a.writer, b.writer), cmp.Compare(a.atom, b.atom)) })
	for _, of := range order {
		storage, list := g.AtomStorage(dag.AtomID(of.atom)), readers[of]
		known := slices.IndexFunc(s.written[of.writer], func(p int32) bool {
			return s.pieces[p].storage == storage && slices.Equal(s.pieces[p].readers, list)
		})
		if known < 0 {
			known = len(s.written[of.writer])
			home, err := place.Home(s.platform, &g.Buffers[storage])
			if err != nil {
				home = s.platform.HostMemory() // a decision says what is wrong
			}
			s.written[of.writer] = append(s.written[of.writer], int32(len(s.pieces)))
			s.pieces = append(s.pieces, piece{writer: of.writer, storage: storage, home: home, readers: list})
			for _, r := range list {
				s.reads[r.of] = append(s.reads[r.of], read{of: int32(len(s.pieces)) - 1, back: r.back})
			}
		}
		s.pieces[s.written[of.writer][known]].bytes += g.AtomBytes(dag.AtomID(of.atom))
	}
}
