package naming

import "testing"

// TestDifferences are Levenshtein distances of textbooks.
func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"saturday", "sunday", 3}, {"", "heft", 4}, {"heft", "", 4}, {"flaw", "lawn", 2}, {"heft", "heft", 0}, {"hfet", "heft", 2}} {
		if got := differences(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d differences, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"laptop", "server", "manycore", "k"}
	for name, want := range map[string]string{
		"serverr": "; did you mean server", "Laptop": "; did you mean laptop", "mancore": "; did you mean manycore", "cluster": "", "x": "", "": "",
	} {
		if got := DidYouMean(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	if got, want := Unknown("policy", "hfet", []string{"eager", "heft"}).Error(), `policy "hfet" is not one of eager, heft; did you mean heft`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	units := []string{"cpu", "cpu.8", "cpu.9", "cpu.10", "cpu.11", "cpu.12", "cpu.14", "gpu0", "gpu1", "gpu2", "gpu3", "x9", "y10"}
	if got, want := Unknown("device", "z", units).Error(), `device "z" is not one of cpu, cpu.8 … cpu.12, cpu.14, gpu0, gpu1, gpu2, gpu3, x9, y10`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOneOf(t *testing.T) {
	for want, list := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := OneOf(list); got != want {
			t.Errorf("%q of %q, want %q", got, list, want)
		}
	}
}
