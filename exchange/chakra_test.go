package exchange

import (
	"strings"
	"testing"

	"dahl/dag"

	"google.golang.org/protobuf/encoding/protowire"
)

// message writes fields in the encoding of their values: whole numbers, texts, or lists of numbers that are packed.
func message(fields ...any) (m []byte) {
	for i := 0; i < len(fields); i += 2 {
		id := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			m = protowire.AppendVarint(protowire.AppendTag(m, id, protowire.VarintType), uint64(v))
		case string:
			m = protowire.AppendString(protowire.AppendTag(m, id, protowire.BytesType), v)
		case []byte:
			m = protowire.AppendBytes(protowire.AppendTag(m, id, protowire.BytesType), v)
		case []int:
			var packed []byte
			for _, n := range v {
				packed = protowire.AppendVarint(packed, uint64(n))
			}
			m = protowire.AppendBytes(protowire.AppendTag(m, id, protowire.BytesType), packed)
		}
	}
	return m
}

// trace writes the metadata of a trace and its nodes.
func trace(nodes ...[]byte) string {
	file := protowire.AppendBytes(nil, message(1, "0.0.4"))
	for _, n := range nodes {
		file = protowire.AppendBytes(file, n)
	}
	return string(file)
}

// onDevice says that a node does not run on the host: is_cpu_op, a bool, is false.
var onDevice = message(1, "is_cpu_op", 27, 0)

// chakraText has an operator that launches a kernel and, as data, reads its result; an operator that only has work; and a collective
// that waits for a node which the file lacks.
var chakraText = trace(
	message(1, 5, 2, "mul", 3, 4, 5, []int{6}, 7, 3, 10, message(1, "rf_id", 9, 1)),
	message(1, 6, 2, "kernel", 3, 4, 4, []int{5}, 5, []int{8}, 7, 20, 8, message(1, "[[1, 2, 0, 10, 4, 'cuda:0'], [3, 3], 7]"), 9, message(1, "[[9, 9, 0, 3, 2, 'cuda:0']]"), 10, onDevice),
	message(1, 8, 2, "gemm", 3, 4, 10, onDevice, 10, message(1, "num_ops", 9, 1000), 10, message(1, "tensor_size", 13, 64)),
	message(1, 9, 2, "all_reduce", 3, 7, 4, []int{5, 6, 99}, 7, 7, 10, onDevice, 10, message(1, "comm_size", 9, 1<<20)),
)

// TestChakraBytes: operands of 10 elements of 4 bytes and of 3 of 2 are 46 bytes, a collective moves what it says.
func TestChakraBytes(t *testing.T) {
	of, err := FormatByName("chakra")
	if err != nil {
		t.Fatal(err)
	}
	in, err := of.Read([]byte(chakraText), "c.et", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"6 kernel": 10*4 + 3*2, "8 gemm": 64, "9 all_reduce": 1 << 20, "5 mul": 0} {
		if got := in.Graph.Tasks[taskNamed(t, in.Graph, name)].MovedBytes; got != want {
			t.Errorf("%s moves %d bytes, want %d", name, got, want)
		}
	}
}

// chakraOfRank is the trace of a rank: an all-reduce of 8 bytes by all in a group, a message of 5 bytes from rank 0 to rank 1, and an operator behind both.
func chakraOfRank(message3, kind int) string {
	return trace(
		message(1, 1, 2, "sum", 3, 7, 10, onDevice, 10, message(1, "comm_type", 9, 0), 10, message(1, "comm_size", 9, 8), 10, message(1, "pg_name", 29, "g")),
		message(1, 2, 2, "message", 3, kind, 5, []int{1}, 10, onDevice, 10, message(1, "comm_size", 9, 5), 10, message(1, "comm_src", 5, 0), 10, message(1, "comm_dst", 5, 1)),
		message(1, 3, 2, "gemm", 3, 4, 5, []int{2}, 7, message3, 10, onDevice))
}

// readRanks reads files of ranks that are named x.0.et and so on, in the order given.
func readRanks(t *testing.T, texts map[string]string, names ...string) (*Imported, error) {
	t.Helper()
	var files []File
	for _, name := range names {
		files = append(files, File{Name: name, In: strings.NewReader(texts[name])})
	}
	return ReadFiles(files, "chakra", Options{})
}

// TestChakraRanks: each rank reads half of the other one's input and sum, 4 bytes each, and rank 1 reads the message. Files may come in any order.
func TestChakraRanks(t *testing.T) {
	texts := map[string]string{"x.0.et": chakraOfRank(3, chakraSend), "x.1.et": chakraOfRank(7, chakraReceive), "x.2.et": ""}
	in, err := readRanks(t, texts, "x.1.et", "x.0.et")
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(t, in.Graph)
	g, moved, home := in.Graph, map[string]int64{}, map[dag.BufferID]string{}
	for i := range g.Tasks {
		k := &g.Tasks[i]
		for _, a := range k.Accesses {
			switch n := g.Buffers[a.Buffer].Bytes(); {
			case a.Mode == dag.Write:
				home[a.Buffer] = k.Placement.Device
			case home[a.Buffer] != k.Placement.Device:
				if a.Box != nil {
					n = a.Box.Elems()
				}
				moved[home[a.Buffer]+" "+k.Placement.Device] += n
			}
		}
	}
	if len(moved) != 2 || moved["gpu0 gpu1"] != 4+4+5 || moved["gpu1 gpu0"] != 4+4 {
		t.Errorf("moved %v, want 13 bytes from gpu0 and 8 back", moved)
	}
	last := g.Tasks[len(g.Tasks)-1]
	if g.Name != "x" || last.Op != "gemm" || last.Costs[0].Ns != 7000 || len(last.After) != 1 {
		t.Errorf("%s ends in %+v", g.Name, last)
	}
	if _, err := readRanks(t, texts, "x.0.et", "x.2.et"); err == nil || !strings.Contains(err.Error(), "rank 1") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without rank 1: %v", err)
	}
}

func FuzzChakra(f *testing.F) { fuzz(f, "chakra") }

// FuzzChakraRanks: two ranks of any contents are a sound graph, or one line.
func FuzzChakraRanks(f *testing.F) {
	f.Add(chakraOfRank(3, chakraSend), chakraOfRank(7, chakraReceive))
	f.Fuzz(func(t *testing.T, a, b string) {
		in, err := readRanks(t, map[string]string{"a": a, "b": b}, "a", "b")
		switch {
		case err == nil:
			checkGraph(t, in.Graph)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("more than one line: %v", err)
		}
	})
}
