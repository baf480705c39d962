package rundir_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dahl/rundir"
)

// A manifest is a Head and whatever else a program says of its runs.
type manifest struct {
	rundir.Head
	Seed int `json:"seed"`
}

func Example() {
	dir := filepath.Join(os.TempDir(), "dahl-rundir-example")
	defer os.RemoveAll(dir)
	m := &manifest{Seed: 7}
	d, err := rundir.Create(dir, m)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	err = d.Write("losses.csv", func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "step,loss\n1,2.3")
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Complete = true
	if _, err := d.Commit(m); err != nil {
		fmt.Println(err)
		return
	}
	var read manifest
	if err := rundir.Open(dir, &read); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Seed, read.Complete, read.Files[0].Name, read.Files[0].Bytes, rundir.Verify(dir))
	// Output: 7 true losses.csv 16 <nil>
}
