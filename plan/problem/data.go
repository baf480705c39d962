package problem

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// Data lists the contents that tasks read, from other tasks or from before the run.
type Data struct {
	Pieces  []Piece
	Written [][]int32 // by writer, and one past the last task for what was there: pieces
	Reads   [][]Read  // by task
	Ways    [][]Way   // by memories, from and to
}

// Piece is all that one task writes of one storage for the same readers. It goes once to each memory where some of them are.
type Piece struct {
	Writer  int32 // one past the last task: it was there before the run
	Storage dag.BufferID
	Bytes   int64
	Home    platform.MemoryID // of the storage
	Readers []Read            // the tasks
}

// Read is a piece and its reader: in the writer's step, or Back steps later.
type Read struct{ Of, Back int32 }

// NewData finds what tasks of a step of a graph read, and of the step before where steps follow each other. What no task writes
// and has no home is wherever it is needed, and no piece. Nor is in a cluster what the host memory of each node has before the step.
func NewData(p *platform.Platform, g *dag.Graph, follows bool) (*Data, error) {
	type version struct{ writer, atom int32 }
	readers, order := map[version][]Read{}, []version(nil)
	place.EachReading(g, func(writer int32, reader dag.TaskID, atom int32, next bool) {
		storage := g.AtomStorage(dag.AtomID(atom))
		before := int(writer) == len(g.Tasks)
		if next && !follows || before && !g.WrittenStorages()[storage] && g.Buffers[storage].Home == "" ||
			before && len(p.Nodes) > 0 && place.AtEachHost(&g.Buffers[storage]) {
			return
		}
		of := version{writer, atom}
		if readers[of] == nil {
			order = append(order, of)
		}
		is := Read{Of: int32(reader)}
		if next {
			is.Back = 1
		}
		if !slices.Contains(readers[of], is) {
			readers[of] = append(readers[of], is)
		}
	})
	slices.SortStableFunc(order, func(a, b version) int { return cmp.Or(cmp.Compare(a.writer, b.writer), cmp.Compare(a.atom, b.atom)) })
	d := &Data{Written: make([][]int32, len(g.Tasks)+1), Reads: make([][]Read, len(g.Tasks)), Ways: newWays(p)}
	for _, of := range order {
		storage, list := g.AtomStorage(dag.AtomID(of.atom)), readers[of]
		at := slices.IndexFunc(d.Written[of.writer], func(i int32) bool {
			return d.Pieces[i].Storage == storage && slices.Equal(d.Pieces[i].Readers, list)
		})
		if at < 0 {
			at = len(d.Written[of.writer])
			if err := d.add(p, g, Piece{Writer: of.writer, Storage: storage, Readers: list}); err != nil {
				return nil, err
			}
		}
		d.Pieces[d.Written[of.writer][at]].Bytes += g.AtomBytes(dag.AtomID(of.atom))
	}
	return d, nil
}

func (d *Data) add(p *platform.Platform, g *dag.Graph, is Piece) (err error) {
	if is.Home, err = place.Home(p, &g.Buffers[is.Storage]); err != nil {
		return err
	}
	id := int32(len(d.Pieces))
	d.Written[is.Writer] = append(d.Written[is.Writer], id)
	d.Pieces = append(d.Pieces, is)
	for _, r := range is.Readers {
		d.Reads[r.Of] = append(d.Reads[r.Of], Read{id, r.Back})
	}
	return nil
}
