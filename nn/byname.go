package nn

import (
	"strings"

	"dahl/naming"
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
	return none, naming.Unknown(what, name, listOf(table))
}

// listOf lists the names in a table.
func listOf[L line](table []L) []string {
	list := make([]string, len(table))
	for i, l := range table {
		list[i] = l.name()
	}
	return list
}

// namesOf are the names in a table for a message.
func namesOf[L line](table []L) string { return strings.Join(listOf(table), ", ") }
