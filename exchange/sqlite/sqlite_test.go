package sqlite

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// TestRows reads a file that SQLite wrote (testdata/make.py), with tables of several pages and a text that goes on over further pages.
func TestRows(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/nsight.sqlite"))(t)
	d := must.Get(Open(bytes.NewReader(data), int64(len(data))))(t)
	want := []string{"StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "TARGET_INFO_GPU"}
	if got := d.Tables(); !slices.Equal(got, want) {
		t.Errorf("tables %v", got)
	}
	texts := map[int64]string{}
	must.Do(t, d.Rows("StringIds", []string{"VALUE", "id", "other"}, func(row []Value) error {
		texts[row[1].Int] = row[0].Text
		return nil
	}))
	if len(texts) != 5 || texts[1] != "cudaLaunchKernel_v7000" || texts[4] != "gemm<float, "+strings.Repeat("x", 700)+">" {
		t.Errorf("texts %v", texts)
	}
	// Kernels of step s begin at 1 s + 100 us s + 13 us + 9 us k and last 8 us.
	at := 0
	must.Do(t, d.Rows("CUPTI_ACTIVITY_KIND_KERNEL", []string{"start", "end", "streamId"}, func(row []Value) error {
		start := int64(1e9 + at/8*100_000 + 13_000 + at%8*9_000)
		if row[0].Int != start || row[1].Int != start+8_000 || row[2].Int != 7 {
			t.Errorf("kernel %d: %v", at, row)
		}
		at++
		return nil
	}))
	if at != 24 || !d.Has("TARGET_INFO_GPU", "totalMemory") || d.Has("TARGET_INFO_GPU", "color") || d.Has("color") {
		t.Errorf("%d kernels", at)
	}
	if err := d.Rows("color", nil, nil); err == nil {
		t.Error("a table that is not there has rows")
	}
}

// pageBytes is the size of pages of files made by hand.
const pageBytes = 512

// row is a row of texts and of numbers of one byte: its length, its number, the length of its head with the kinds of values, and the values.
func row(values ...any) []byte {
	var kinds, content []byte
	for _, v := range values {
		switch v := v.(type) {
		case string:
			kinds, content = append(kinds, byte(13+2*len(v))), append(content, v...)
		case int:
			kinds, content = append(kinds, 1), append(content, byte(v))
		}
	}
	return slices.Concat([]byte{byte(1 + len(kinds) + len(content)), 1, byte(1 + len(kinds))}, kinds, content)
}

// page is a page of cells: of rows (kind 13), or of numbers of pages (kind 5), of which the last stands in the head. The first page of a file begins with the head of the file.
func page(first bool, kind byte, last int, cells ...[]byte) []byte {
	p := make([]byte, pageBytes)
	at := 0
	if first {
		copy(p, Mark)
		p[16], at = pageBytes>>8, 100
	}
	p[at], p[at+4] = kind, byte(len(cells))
	pointers := at + 8
	if kind == 5 {
		p[at+11], pointers = byte(last), at+12
	}
	end := pageBytes
	for i, c := range cells {
		end -= len(c)
		copy(p[end:], c)
		p[pointers+2*i], p[pointers+2*i+1] = byte(end>>8), byte(end)
	}
	return p
}

// tableAt is the row of the list of tables for a table with one column.
func tableAt(name string, root int) []byte {
	return row("table", name, name, root, "CREATE TABLE t(a)")
}

// damaged are files by what is wrong with them.
func damaged() map[string][]byte {
	all := map[string][]byte{}
	beyond := page(true, 13, 0, tableAt("t", 2))
	beyond[20], beyond[108], beyond[109] = 32, 500>>8, 500&0xff // of 512 bytes the last 32 are no part of a row
	all["a row at byte 500 of 480"] = beyond
	all["two tables with one page"] = slices.Concat(page(true, 13, 0, tableAt("t", 2), tableAt("u", 2)), page(false, 13, 0, row("x")))
	all["one name twice"] = slices.Concat(page(true, 13, 0, tableAt("t", 2), tableAt("t", 2)), page(false, 13, 0, row("x")))
	// Of a row of 1400 bytes 384 are here, since two pages of 508 hold the rest: a head of 3 and a text of 1397. It goes on over page 3, and from there over page 3 again.
	over := slices.Concat([]byte{0x80 | 1400>>7, 1400 & 0x7f, 1, 3, 0x95, 0x77}, make([]byte, 381), []byte{0, 0, 0, 3})
	circle := page(false, 0, 0)
	circle[3] = 3
	all["a row that goes round"] = slices.Concat(page(true, 13, 0, tableAt("t", 2)), page(false, 13, 0, over), circle)
	deep := page(true, 13, 0, tableAt("t", 2))
	for at := 2; at < 40; at++ {
		deep = append(deep, page(false, 5, at+1)...)
	}
	all["39 pages within each other"] = append(deep, page(false, 13, 0, row("x"))...)
	return all
}

// readAll visits all rows.
func readAll(data []byte) (rows int, err error) {
	d, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, err
	}
	for _, name := range d.Tables() {
		if err := d.Rows(name, []string{"a"}, func([]Value) error { rows++; return nil }); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// TestDamaged: files that are read beyond a page, or for longer than they are, are refused. The same file without the mistake has one row.
func TestDamaged(t *testing.T) {
	whole := slices.Concat(page(true, 13, 0, tableAt("t", 2)), page(false, 13, 0, row("x")))
	if n, err := readAll(whole); n != 1 || err != nil {
		t.Fatalf("%d rows, %v; want 1", n, err)
	}
	for what, data := range damaged() {
		if _, err := readAll(data); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzOpen: whatever comes, nothing is read beyond the file, and no circle of pages is followed.
func FuzzOpen(f *testing.F) {
	f.Add(must.Get(os.ReadFile("testdata/nsight.sqlite"))(f))
	for _, data := range damaged() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, name := range d.Tables() {
			d.Rows(name, []string{"start"}, func([]Value) error { return nil }) // an error is as good as rows
		}
	})
}
