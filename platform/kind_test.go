package platform

import "testing"

// What a kind is, fact by fact: only the program's own cores are processors and need no driver,
// only a driver of the system gives numbers, and only what the program makes itself is emulated,
// from a core, whose code it runs.
func TestKinds(t *testing.T) {
	want := map[string]Kind{
		"cpu":      {Name: "cpu", Code: "go", Processor: true},
		"cuda":     {Name: "cuda", Driver: "cuda", Meter: "nvml", Code: "cuda", Numbered: true},
		"emulated": {Name: "emulated", Driver: "emulated", Code: "go", Emulated: true},
	}
	list := Kinds()
	if len(list) != len(want) {
		t.Errorf("kinds %+v, want %d", list, len(want))
	}
	for _, k := range list {
		d := Device{Kind: k.Name}
		if found, err := KindByName(k.Name); err != nil || k != want[k.Name] || found != k ||
			d.IsProcessor() != k.Processor || d.IsEmulated() != k.Emulated || d.Driver() != k.Driver || d.Meter() != k.Meter || d.Code() != k.Code {
			t.Errorf("kind %+v, looked up %+v, want %+v", k, found, want[k.Name])
		}
	}
	if k, err := KindByName("fpga"); err == nil || err.Error() != `kind "fpga" is not one of cpu, cuda, emulated` {
		t.Errorf("fpga is %+v", k)
	}
	list[0].Name = "changed"
	if Kinds()[0].Name != "cpu" {
		t.Error("the table was changed from outside")
	}
}

// Two devices at memory 0 say 3 and 2 engines into it and one of them 1 out of it; those of
// memory 1 say one direction, and memory 2 has no device.
func TestCopyEngines(t *testing.T) {
	p := &Platform{Memories: make([]Memory, 3), Devices: []Device{
		{CopyEnginesIn: 3}, {CopyEnginesIn: 2, CopyEnginesOut: 1}, {Memory: 1, CopyEnginesOut: 5}, {Memory: 1}}}
	for m, want := range [][2]int{{3, 1}, {0, 5}, {0, 0}} {
		if in, out := p.CopyEngines(MemoryID(m)); [2]int{in, out} != want {
			t.Errorf("memory %d: %d in, %d out; want %v", m, in, out, want)
		}
	}
}
