package exchange

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"dahl/exchange/recording"
	"dahl/must"
)

// zipped is a text in the form of gzip.
func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	must.Get(z.Write([]byte(text)))(t)
	must.Do(t, z.Close())
	return out.Bytes()
}

// TestRoom: what a file holds is refused where it takes more than the memory that is left, however short the file is. A graph takes 20 bytes for each of its file, and
// each of 4,000 operators of a recording 1,000 bytes and those that it has there. With a step only its own operator counts, and one or two annotations.
func TestRoom(t *testing.T) {
	const mb = 1_000_000
	long := "1\n0 1 0\n#" + strings.Repeat("x", mb-9)
	operator := `{"ph":"X","cat":"cpu_op","pid":1,"tid":1,"name":"aten::mm","ts":1,"dur":5}`
	step := `{"ph":"X","cat":"user_annotation","pid":1,"tid":1,"name":"ProfilerStep#1","ts":100,"dur":9},` + strings.Replace(operator, `"ts":1,`, `"ts":101,`, 1)
	recorded := `{"schemaVersion":1,"traceEvents":[` + strings.Repeat(operator+",", 4000) + step + `]}`
	all := int64(4001*(1000+len(operator)+1) + 2000) // with a comma each, and 2,000 for the annotation
	traced := `{"schema":"1.1.0","nodes":[` + strings.Repeat(`{"id":1},`, 4000) + `{"id":1}]}`
	for _, c := range []struct {
		what, name, text string
		room             int64
		Options
		want string
	}{
		{"a graph", "a.stg.gz", long, 20 * mb, Options{}, ""},
		{"a graph in less", "a.stg.gz", long, 20*mb - 1, Options{}, "a.stg.gz: what it describes takes more memory than the 20 MB left; free some, or take one --step of a recording"},
		{"a recording", "r.json.gz", recorded, all, Options{}, ""},
		{"a recording in less", "r.json.gz", recorded, all - 2000, Options{}, "r.json.gz: at byte"},
		{"its step", "r.json.gz", recorded, 10_000, Options{Step: "1"}, ""},
		{"its step in less", "r.json.gz", recorded, 2000, Options{Step: "1"}, "takes more memory than the 2 kB left"},
		{"an execution trace", "e.json.gz", traced, mb, Options{}, "takes more memory than the 1 MB left"},
		{"an entry of 64 MiB", "r.json.gz", `{"traceEvents":[{"ph":"X","name":"` + strings.Repeat("x", 64<<20), 1 << 40, Options{Step: "1"}, "r.json.gz: at byte 16: an entry of more than 64 MiB; the file is damaged"},
	} {
		for _, src := range [][]byte{zipped(t, c.text), []byte(c.text)} {
			c.Room = recording.NewRoom(c.room)
			_, err := ReadFiles([]File{{Name: c.name, In: bytes.NewReader(src)}}, "", c.Options)
			if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) && err != nil {
				t.Errorf("%s: %v, want %q", c.what, err, c.want)
			}
		}
	}
}

// TestRoomOfRanks: files that are read together share their memory. One trace of 3 nodes fits, and eight of them do not.
func TestRoomOfRanks(t *testing.T) {
	for n, fits := range map[int]bool{1: true, 2: true, 8: false} {
		var files []File
		for i := range n {
			kind := chakraSend
			if i == 1 {
				kind = chakraReceive
			}
			files = append(files, File{Name: fmt.Sprintf("x.%d.et", i), In: strings.NewReader(chakraOfRank(3, kind))})
		}
		room := recording.NewRoom(int64(3 * 20 * len(chakraOfRank(3, chakraSend))))
		if _, err := ReadFiles(files, "chakra", Options{Room: room}); (err == nil) != fits {
			t.Errorf("%d traces in the room of three: %v", n, err)
		}
	}
}
