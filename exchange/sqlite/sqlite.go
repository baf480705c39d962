// Package sqlite reads tables of SQLite files, all rows in the order of the file. It knows neither SQL nor indices, which an export of
// a recording does not need. The format is described in https://www.sqlite.org/fileformat2.html.
//
// A library with all of SQLite would make the program a fifth larger, and its tests longer to build than the limit of the tests allows.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Mark is the beginning of every file.
const Mark = "SQLite format 3\x00"

var errDamaged = errors.New("a page of the file is damaged, or the file was cut off")

// Value is a value of a row. Texts and blobs are in Text, with a question mark in place of bytes that are no UTF-8; numbers are in Number; all others are zero.
type Value struct {
	Number float64
	Int    int64 // of whole numbers
	Text   string
}

// Database is an open file.
type Database struct {
	in     io.ReaderAt
	size   int64
	page   int // bytes
	usable int // of a page
	tables map[string]table
	names  []string
	read   map[int64]bool // pages so far
}

// maxDepth bounds the pages from the root of a table to a row, as SQLite itself does.
const maxDepth = 20

type table struct {
	root    int64
	columns []string // in small letters
	rowID   int      // the column that is the number of the row; -1: none
}

// Open reads the list of tables of a file with as many bytes.
func Open(in io.ReaderAt, size int64) (*Database, error) {
	head := make([]byte, 100)
	if n, err := in.ReadAt(head, 0); n < len(head) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !strings.HasPrefix(string(head), Mark) {
		return nil, errors.New("not a SQLite file")
	}
	d := &Database{in: in, size: size, page: int(binary.BigEndian.Uint16(head[16:])), tables: map[string]table{}, read: map[int64]bool{}}
	if d.page == 1 {
		d.page = 1 << 16
	}
	if d.usable = d.page - int(head[20]); d.page < 512 || d.usable < 480 {
		return nil, errDamaged
	}
	if text := binary.BigEndian.Uint32(head[56:]); text > 1 {
		return nil, errors.New("its texts are in UTF-16; export it with UTF-8")
	}
	schema := table{root: 1, columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, rowID: -1}
	err := d.rows(schema, []string{"type", "name", "rootpage", "sql"}, func(row []Value) error {
		if row[0].Text == "table" && row[2].Int > 0 {
			d.names = append(d.names, row[1].Text)
			d.tables[row[1].Text] = tableOf(row[2].Int, row[3].Text)
		}
		return nil
	})
	return d, err
}

// tableOf takes the columns of a table from the statement that made it.
func tableOf(root int64, statement string) table {
	t := table{root: root, rowID: -1}
	_, body, _ := strings.Cut(statement, "(")
	depth, start := 0, 0
	for i, c := range body + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			words := strings.Fields(body[start:i])
			if start = i + 1; len(words) == 0 {
				continue
			}
			definition := strings.ToUpper(strings.Join(words, " "))
			if slices.Contains([]string{"PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "CONSTRAINT"}, strings.ToUpper(words[0])) {
				continue
			}
			if strings.Contains(definition, " INTEGER") && strings.Contains(definition, "PRIMARY KEY") {
				t.rowID = len(t.columns)
			}
			t.columns = append(t.columns, strings.ToLower(strings.Trim(words[0], "\"`[])")))
		}
	}
	return t
}

// Tables lists the tables.
func (d *Database) Tables() []string { return d.names }

// Has reports whether a table is there with some columns.
func (d *Database) Has(name string, columns ...string) bool {
	t, ok := d.tables[name]
	return ok && !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(t.columns, strings.ToLower(c)) })
}

// Rows visits the rows of a table, with the columns in the order given. A column that is not there is zero. A table can be visited once.
func (d *Database) Rows(name string, columns []string, visit func(row []Value) error) error {
	t, ok := d.tables[name]
	if !ok {
		return fmt.Errorf("there is no table %s", name)
	}
	return d.rows(t, columns, visit)
}

func (d *Database) rows(t table, columns []string, visit func(row []Value) error) error {
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = slices.Index(t.columns, strings.ToLower(c))
	}
	row := make([]Value, len(columns))
	return d.tree(t.root, 1, func(rowID int64, record []byte) error {
		values, err := valuesOf(record)
		if err != nil {
			return err
		}
		for i, c := range at {
			switch {
			case c < 0 || c >= len(values):
				row[i] = Value{}
			case c == t.rowID:
				row[i] = Value{Number: float64(rowID), Int: rowID}
			default:
				row[i] = values[c]
			}
		}
		return visit(row)
	})
}

// bytes are the bytes of a page. A page that comes again is a circle, or in two tables or rows. SQLite writes none: so no more is read than the file has.
func (d *Database) bytes(page int64) ([]byte, error) {
	if page < 1 || page > d.size/int64(d.page) || d.read[page] {
		return nil, errDamaged
	}
	d.read[page] = true
	p := make([]byte, d.page)
	_, err := d.in.ReadAt(p, (page-1)*int64(d.page))
	if errors.Is(err, io.EOF) {
		err = nil // at the end of the file
	}
	return p, err
}

// tree visits the records of a table below a page.
func (d *Database) tree(page int64, depth int, visit func(rowID int64, record []byte) error) error {
	p, err := d.bytes(page)
	if err != nil {
		return err
	}
	head := 0
	if page == 1 {
		head = 100
	}
	kind, cells, first := p[head], int(binary.BigEndian.Uint16(p[head+3:])), head+8
	if kind == 5 {
		first = head + 12
	}
	if kind != 5 && kind != 13 || first+2*cells > len(p) || depth > maxDepth {
		return errDamaged
	}
	for i := range cells {
		cell := int(binary.BigEndian.Uint16(p[first+2*i:]))
		if cell+4 > d.usable {
			return errDamaged
		}
		if kind == 5 {
			err = d.tree(int64(binary.BigEndian.Uint32(p[cell:])), depth+1, visit)
		} else {
			err = d.leaf(p[cell:d.usable], visit)
		}
		if err != nil {
			return err
		}
	}
	if kind == 5 {
		return d.tree(int64(binary.BigEndian.Uint32(p[head+8:])), depth+1, visit)
	}
	return nil
}

// leaf visits a record, of which a part may lie on further pages.
func (d *Database) leaf(cell []byte, visit func(rowID int64, record []byte) error) error {
	size, n := varint(cell)
	rowID, m := varint(cell[n:])
	if n == 0 || m == 0 || size < 0 || size > d.size {
		return errDamaged
	}
	cell = cell[n+m:]
	local, most := int(size), d.usable-35
	if local > most {
		least := (d.usable-12)*32/255 - 23
		if local = least + (int(size)-least)%(d.usable-4); local > most {
			local = least
		}
	}
	if local > len(cell) {
		return errDamaged
	}
	record := cell[:local]
	if int64(local) < size {
		if len(cell) < local+4 {
			return errDamaged
		}
		record = slices.Clone(record)
		for next := int64(binary.BigEndian.Uint32(cell[local:])); int64(len(record)) < size; {
			p, err := d.bytes(next)
			if err != nil {
				return err
			}
			record = append(record, p[4:min(d.usable, 4+int(size)-len(record))]...)
			next = int64(binary.BigEndian.Uint32(p))
		}
	}
	return visit(rowID, record)
}

// varint reads a number of one to nine bytes; no byte is read where it does not end.
func varint(b []byte) (v int64, n int) {
	for i := range min(9, len(b)) {
		if i == 8 {
			return v<<8 | int64(b[i]), 9
		}
		if v = v<<7 | int64(b[i]&0x7f); b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// valuesOf reads the values of a record: their types, and then their contents.
func valuesOf(record []byte) (values []Value, err error) {
	size, n := varint(record)
	if n == 0 || size < int64(n) || size > int64(len(record)) {
		return nil, errDamaged
	}
	kinds, rest := record[n:size], record[size:]
	for len(kinds) > 0 {
		kind, n := varint(kinds)
		if n == 0 || kind < 0 {
			return nil, errDamaged
		}
		kinds = kinds[n:]
		length := (kind - 12) / 2
		if kind < 12 {
			length = [...]int64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}[kind]
		}
		if length > int64(len(rest)) {
			return nil, errDamaged
		}
		var v Value
		switch content := rest[:length]; {
		case kind >= 12:
			v.Text = strings.ToValidUTF8(string(content), "?")
		case kind == 7:
			v.Number = math.Float64frombits(binary.BigEndian.Uint64(content))
			v.Int = int64(v.Number)
		case kind == 9:
			v.Number, v.Int = 1, 1
		case length > 0:
			v.Int = int64(int8(content[0]))
			for _, c := range content[1:] {
				v.Int = v.Int<<8 | int64(c)
			}
			v.Number = float64(v.Int)
		}
		values, rest = append(values, v), rest[length:]
	}
	return values, nil
}
