package recording

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"dahl/exchange/sqlite"
)

// The tables of an export of Nsight Systems that have a meaning here.
const (
	nsightStrings = "StringIds"
	nsightGPUs    = "TARGET_INFO_GPU"
	nsightRanges  = "NVTX_EVENTS"
	nsightWork    = "CUPTI_ACTIVITY_KIND_"
)

// nsightReader fills a recording.
type nsightReader struct {
	*recording
	db       *sqlite.Database
	worked   bool // whether the file has work of a GPU
	texts    map[int64]string
	threadAt map[int64]int
	streamAt map[[2]int64]int
}

// IsNsight recognises an export by its beginning.
func IsNsight(_ string, beginning []byte) bool {
	return bytes.HasPrefix(beginning, []byte(sqlite.Mark))
}

// readNsight reads a part of what Nsight Systems recorded, as "nsys export --type sqlite" writes it. It holds a page of the file at a time, all texts, and
// what the part keeps. A file that can be read in its order only is held as a whole.
func readNsight(f File, p *part) (*recording, error) {
	pages := f.Pages
	if pages == nil {
		data, err := f.Room.ReadAll(f.In, nsightBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		pages = io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
	}
	r, err := nsightOf(pages, f, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return r, nil
}

func nsightOf(pages *io.SectionReader, f File, p *part) (*recording, error) {
	db, err := sqlite.Open(pages, pages.Size())
	if err != nil {
		return nil, err
	}
	r := &nsightReader{recording: newRecording(f, p), db: db, texts: map[int64]string{}, threadAt: map[int64]int{}, streamAt: map[[2]int64]int{}}
	err = r.rows(nsightStrings, []string{"id", "value"}, func(v []sqlite.Value) error {
		r.texts[v[0].Int] = v[1].Text
		r.keep(int64(len(v[1].Text)))
		return nil
	})
	for _, table := range db.Tables() {
		if err == nil {
			err = r.table(table)
		}
	}
	if err != nil {
		return nil, err
	}
	if !r.worked {
		return nil, errors.New("no work of a GPU is in it; record with nsys profile --trace cuda")
	}
	r.settle()
	return r.recording, nil
}

// rows visits the rows of a table, if it is there.
func (r *nsightReader) rows(table string, columns []string, visit func([]sqlite.Value) error) error {
	if !r.db.Has(table) {
		return nil
	}
	err := r.db.Rows(table, columns, func(row []sqlite.Value) error {
		return cmp.Or(visit(row), r.room.check())
	})
	if err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return nil
}

// table reads one table. The others are counted by their rows.
func (r *nsightReader) table(name string) error {
	switch name {
	case nsightWork + "KERNEL":
		return r.rows(name, []string{"start", "end", "deviceId", "streamId", "correlationId", "demangledName", "shortName"}, func(v []sqlite.Value) error {
			text := r.texts[v[5].Int]
			if text == "" {
				text = r.texts[v[6].Int]
			}
			return r.work(v, event{cat: kernel, name: text})
		})
	case nsightWork + "MEMCPY":
		return r.rows(name, []string{"start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind"}, func(v []sqlite.Value) error {
			if v[5].Int < 0 {
				return fmt.Errorf("a copy of %d bytes; the file is damaged", v[5].Int)
			}
			return r.work(v, event{cat: copyWork, name: nsightCopy(v[6].Int), bytes: v[5].Int})
		})
	case nsightWork + "MEMSET":
		return r.rows(name, []string{"start", "end", "deviceId", "streamId", "correlationId"}, func(v []sqlite.Value) error {
			return r.work(v, event{cat: setWork, name: "Memset (Device)"})
		})
	case nsightWork + "RUNTIME":
		return r.rows(name, []string{"start", "end", "globalTid", "correlationId", "nameId"}, func(v []sqlite.Value) error {
			return r.onThread(v, event{cat: call, link: v[3].Int, name: callVersion.ReplaceAllString(r.texts[v[4].Int], "")})
		})
	case nsightRanges:
		return r.rows(name, []string{"start", "end", "globalTid", "text", "textId"}, func(v []sqlite.Value) error {
			text := v[3].Text
			if text == "" {
				text = r.texts[v[4].Int]
			}
			if v[1].Int == 0 || v[2].Int == 0 {
				r.left["marks and open ranges"]++
				return nil
			}
			return r.onThread(v, event{cat: annotation, name: text})
		})
	case nsightGPUs:
		return r.rows(name, []string{"id", "name", "totalMemory"}, func(v []sqlite.Value) error {
			r.gpus = append(r.gpus, gpu{ID: int(v[0].Int), Name: v[1].Text, MemoryBytes: v[2].Int})
			return nil
		})
	case nsightStrings:
		return nil
	}
	if !strings.HasPrefix(name, nsightWork) {
		return nil // about the machine and the export
	}
	return r.rows(name, nil, func([]sqlite.Value) error {
		r.left["rows of "+name]++
		return nil
	})
}

// callVersion is behind the names of calls, as in cudaLaunchKernel_v7000.
var callVersion = regexp.MustCompile(`_v\d+$`)

// nsightCopy names a copy by its kind as CUPTI numbers them, in the words of PyTorch's profiler.
func nsightCopy(kind int64) string {
	switch kind {
	case 1:
		return "Memcpy HtoD (Host -> Device)"
	case 2:
		return "Memcpy DtoH (Device -> Host)"
	case 8:
		return "Memcpy DtoD (Device -> Device)"
	case 10:
		return "Memcpy PtoP (Device -> Device)"
	}
	return "Memcpy of kind " + strconv.FormatInt(kind, 10)
}

// timed gives an event the time of a row.
func (r *nsightReader) timed(v []sqlite.Value, e *event) error {
	e.span = span{v[0].Int, v[1].Int}
	if e.start < 0 || e.end < e.start || e.end > math.MaxInt64>>4 {
		return fmt.Errorf("%q lasts from %d to %d ns; a clock ran backwards, or the file is damaged", e.name, e.start, e.end)
	}
	return nil
}

// work adds work of a GPU to its stream.
func (r *nsightReader) work(v []sqlite.Value, e event) error {
	if err := r.timed(v, &e); err != nil {
		return err
	}
	e.link, r.worked = v[4].Int, true
	if !r.wants(&e) {
		return nil
	}
	key := [2]int64{v[2].Int, v[3].Int}
	at, ok := r.streamAt[key]
	if !ok {
		at = len(r.streams)
		r.streamAt[key] = at
		r.streams = append(r.streams, stream{device: int(v[2].Int), id: strconv.FormatInt(v[3].Int, 10)})
	}
	r.streams[at].events = append(r.streams[at].events, e)
	return nil
}

// onThread adds a call or a range to its thread. A thread's number has the process above its lowest 24 bits.
func (r *nsightReader) onThread(v []sqlite.Value, e event) error {
	if err := r.timed(v, &e); err != nil {
		return err
	}
	if !r.wants(&e) {
		return nil
	}
	const bits = 24
	at, ok := r.threadAt[v[2].Int]
	if !ok {
		at = len(r.threads)
		r.threadAt[v[2].Int] = at
		r.threads = append(r.threads, thread{process: strconv.FormatInt(v[2].Int>>bits&(1<<bits-1), 10), id: strconv.FormatInt(v[2].Int&(1<<bits-1), 10)})
	}
	r.threads[at].events = append(r.threads[at].events, e)
	return nil
}
