package nn

import (
	"fmt"
	"strings"
)

// line is a line of a table of this package.
type line interface{ name() string }

// byName finds a line of a table.
func byName[L line](what, name string, table []L) (L, error) {
	for _, l := range table {
		if l.name() == name {
			return l, nil
		}
	}
	var none L
	return none, fmt.Errorf("%s %q is not one of %s", what, name, namesOf(table))
}

// namesOf lists the names in a table.
func namesOf[L line](table []L) string {
	names := make([]string, len(table))
	for i, l := range table {
		names[i] = l.name()
	}
	return strings.Join(names, ", ")
}
