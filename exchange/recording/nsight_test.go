package recording

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"dahl/must"
)

// TestNsight: steps are the ranges of NVTX, 100 us each, and the last of them ends with its last call, after 95 us. Kernels follow each other in their stream.
func TestNsight(t *testing.T) {
	data := must.Get(os.ReadFile("../sqlite/testdata/nsight.sqlite"))(t)
	r := must.Get(nsightOf(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), File{Name: "n.sqlite"}, all()))(t)
	if len(r.steps) != 3 || r.steps[1].end-r.steps[1].start != 100_000 || len(r.streams) != 1 || len(r.streams[0].events) != 27 || len(r.threads) != 1 || r.threads[0].process != "77" || r.threads[0].id != "5" {
		t.Errorf("%d steps, %d streams, threads %+v", len(r.steps), len(r.streams), r.threads)
	}
	if first := r.streams[0].events[0]; first.cat != copyWork || first.bytes != 4096 || !strings.Contains(first.name, "HtoD") {
		t.Errorf("the first work is %+v", first)
	}
	out := must.Get(Read([]File{{Name: "n.sqlite", In: bytes.NewReader(data)}}, "n", Options{}))(t)
	if out.Machine == nil || out.Graph.NumTasks() == 0 || len(out.Left) != 1 || out.Left[0] != (LeftOut{"rows of CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 3}) {
		t.Errorf("left out %v", out.Left)
	}
}

// negativeCopy gives the first copy -32,768 instead of 4,096 bytes: stream 7 stands before them, and the correlation of 1 between takes no byte in SQLite's format.
func negativeCopy(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte("\x07\x10\x00"), []byte("\x07\x80\x00"))
}

// TestNsightNegative: a copy of less than no bytes is one line about the file.
func TestNsightNegative(t *testing.T) {
	data := negativeCopy(must.Get(os.ReadFile("../sqlite/testdata/nsight.sqlite"))(t))
	_, err := Read([]File{{Name: "n.sqlite", In: bytes.NewReader(data)}}, "n", Options{})
	if want := "n.sqlite: table CUPTI_ACTIVITY_KIND_MEMCPY: a copy of -32768 bytes; the file is damaged"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzNsight(f *testing.F) {
	data := must.Get(os.ReadFile("../sqlite/testdata/nsight.sqlite"))(f)
	f.Add(data)
	f.Add(bytes.ReplaceAll(data, []byte("gemm"), []byte("g\x82mm"))) // a name that is no UTF-8
	f.Add(negativeCopy(data))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !IsNsight("", data) {
			return
		}
		_, err := Read([]File{{Name: "n.sqlite", In: bytes.NewReader(data)}}, "n", Options{})
		if err != nil && (!strings.HasPrefix(err.Error(), "n.sqlite: ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("the error %q is not one line about the file", err)
		}
	})
}
