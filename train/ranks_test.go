package train

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/mpi"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/nn/models"
	"dahl/plan/strategy"
	"dahl/platform"
)

// post is the messages between ranks of one process.
type post struct {
	mu   sync.Mutex
	sent map[[3]int][][]byte // by source, destination and tag
}

// end is one rank's.
type end struct {
	*post
	rank, size int
	waits      map[mpi.Request]wait
	next       mpi.Request
}

// wait is for a message.
type wait struct {
	from, tag int
	b         []byte
}

func (e *end) Rank() int            { return e.rank }
func (e *end) Size() int            { return e.size }
func (e *end) Alloc(n int64) []byte { return make([]byte, n) }
func (e *end) Abort()               {}
func (e *end) Outlives() bool       { return false }
func (e *end) Shrink() error        { return nil }
func (e *end) Close() error         { return nil }

func (e *end) Send(to, tag int, b []byte) (mpi.Request, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	way := [3]int{e.rank, to, tag}
	e.sent[way] = append(e.sent[way], bytes.Clone(b))
	e.next++
	return e.next, nil
}

// Receive: the first request that is asked for gets the first message. Ranks ask in order.
func (e *end) Receive(from, tag int, b []byte) (mpi.Request, error) {
	e.next++
	e.waits[e.next] = wait{from, tag, b}
	return e.next, nil
}

func (e *end) Done(r mpi.Request) (bool, error) {
	w, receives := e.waits[r]
	if !receives {
		return true, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	way := [3]int{w.from, e.rank, w.tag}
	if len(e.sent[way]) == 0 {
		return false, nil
	}
	copy(w.b, e.sent[way][0])
	e.sent[way] = e.sent[way][1:]
	delete(e.waits, r)
	return true, nil
}

// together calls f as each of several ranks.
func together(t *testing.T, size int, f func(n *execute.Ranks) error) {
	t.Helper()
	all := &post{sent: map[[3]int][][]byte{}}
	var ranks sync.WaitGroup
	failed := make([]error, size)
	for rank := range size {
		ranks.Go(func() {
			n, err := execute.Join(mpi.Launch{Rank: rank, Size: size, LocalRank: rank, LocalSize: size}, func(l mpi.Launch) (mpi.Port, error) {
				return &end{post: all, rank: l.Rank, size: l.Size, waits: map[mpi.Request]wait{}}, nil
			})
			if err == nil {
				if err = n.Agree(nil, nil); err == nil {
					err = f(n)
				}
				err = n.Close(err)
			}
			failed[rank] = err
		})
	}
	ranks.Wait()
	must.Do(t, errors.Join(failed...))
}

// singles are devices of a core each: of one machine, or each a node.
func singles(t *testing.T, n int, cluster bool) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "singles"}
	for i := range n {
		at := platform.MemoryID(0)
		if cluster {
			at = platform.MemoryID(i)
			p.Nodes = append(p.Nodes, platform.Node{Name: fmt.Sprintf("n%d", i)})
			for j := range i {
				p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(j), To: at, Links: []platform.LinkID{0}})
			}
		}
		if int(at) == len(p.Memories) {
			p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprintf("ram%d", i), BandwidthBytesPerSec: 1e10, Node: platform.NodeID(at)})
		}
		p.Devices = append(p.Devices, platform.Device{Name: fmt.Sprintf("cpu%d", i), Kind: platform.CPU, Count: 1, Memory: at, FlopsPerSec: map[string]float64{"float32": 1e9}})
	}
	if cluster {
		p.Links = []platform.Link{{Name: "net", BandwidthBytesPerSec: 1e9}}
	}
	must.Do(t, p.Complete())
	return p
}

// TestStreamedOverRanks: over ranks each one reads the samples and labels that its own tasks use, and no samples go from node to node. The weights are those of
// one process, with the data in memory where that can be, and of a training that goes on from a checkpoint. Devices share the samples of the
// batch or of micro-batches, or have stages: with these the first reads samples and the last one labels.
func TestStreamedOverRanks(t *testing.T) {
	text := filepath.Join(t.TempDir(), "a.txt")
	must.Do(t, os.WriteFile(text, bytes.Repeat([]byte("over the hills and far away, "), 17), 0o666)) // 493 characters, of which 443 are for the training
	sequences := must.Get(nn.New("sequences", []int{7}, layers.Embedding{Tokens: 19, Width: 5}, layers.Dense{Outputs: 19}))(t)
	images := splits(t)["plain"]
	for _, c := range []struct {
		model    *nn.Model
		data     string
		strategy string
		images   []int // samples of the last evaluation that each rank reads
		labels   []int
	}{
		{must.Get(models.ByName("mlp"))(t), images, "data-parallel:2", []int{5, 6}, []int{5, 6}}, // of 11
		{sequences, text, "data-parallel:4", []int{1, 2, 2, 2}, []int{1, 2, 2, 2}},               // of (49-1)/7 = 7 windows
		{sequences, text, "data-parallel:2+1f1b:2x3", []int{3, 4, 0, 0}, []int{0, 0, 3, 4}},
		{sequences, text, "1f1b:2x3", []int{7, 0}, []int{0, 7}},
	} {
		t.Run(fmt.Sprint(c.model.Name, " ", c.strategy), func(t *testing.T) {
			ranks := len(c.images)
			o := Options{Batch: 13, Epochs: 2, Seed: 5, Shuffle: true, Type: dag.Float32, Strategy: must.Get(strategy.ByName(c.strategy))(t), Checkpoint: CheckpointEvery{Steps: 2}}
			prepared := func(cluster bool, o Options) *Workload {
				d := must.Get(OpenDataAs(c.data, data.Options{Positions: Window(c.model)}))(t)
				return must.Get(New(c.model, d, singles(t, ranks, cluster), o))(t)
			}
			streamed := o
			streamed.Stream = true
			o.Strategy, o.Lowering = nil, prepared(true, streamed).Lowering // with the sums of a cluster
			want := must.Get(prepared(false, o).Train(t.Context()))(t).WeightsHash()
			var middle *Checkpoint
			for range 2 {
				images, labels := make([]int, ranks), make([]int, ranks)
				together(t, ranks, func(n *execute.Ranks) error {
					w := prepared(true, streamed)
					w.Options.Ranks = n
					if n.Rank > 0 {
						p := must.Get(w.Serve())(t)
						defer p.Close()
						err := p.Serve(nil)
						images[n.Rank], labels[n.Rank] = readBy(&p.feed)
						return err
					}
					tr := must.Get(w.from(middle))(t)
					defer tr.Close()
					tr.OnCheckpoint = func(c *Checkpoint) error {
						if c.Steps == 4 {
							middle = reread(t, c)
						}
						return nil
					}
					err := tr.Run(t.Context())
					images[0], labels[0] = readBy(&tr.feed)
					if got := tr.WeightsHash(); got != want {
						t.Errorf("weights %.12s, want %.12s", got, want)
					}
					return err
				})
				if !slices.Equal(images, c.images) || !slices.Equal(labels, c.labels) {
					t.Errorf("the ranks read %v samples and labels of %v; want %v and %v", images, labels, c.images, c.labels)
				}
			}
		})
	}
}

// from is a training that begins, or goes on from a checkpoint.
func (w *Workload) from(c *Checkpoint) (*Trainer, error) {
	if c == nil {
		return w.Start()
	}
	return w.Resume(c)
}

// readBy counts the samples of a batch of which samples and labels are read.
func readBy(f *feeder) (images, labels int) {
	for p := range f.streams {
		if p.labels {
			labels += p.rows.Len()
		} else {
			images += p.rows.Len()
		}
	}
	return images, labels
}

func reread(t *testing.T, c *Checkpoint) *Checkpoint {
	var file bytes.Buffer
	must.Do(t, c.Encode(&file))
	return must.Get(DecodeCheckpoint(bytes.NewReader(file.Bytes()), int64(file.Len())))(t)
}
