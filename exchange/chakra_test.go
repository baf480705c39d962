package exchange

import (
	"testing"

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

func FuzzChakra(f *testing.F) { fuzz(f, "chakra") }
