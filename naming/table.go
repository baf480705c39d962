package naming

// Find is the line of a table with a name. Its error lists all names.
func Find[L any](what, name string, table []L, nameOf func(L) string) (line L, err error) {
	for _, l := range table {
		if nameOf(l) == name {
			return l, nil
		}
	}
	return line, Unknown(what, name, List(table, nameOf))
}

// List is the names of the lines of a table.
func List[L any](table []L, nameOf func(L) string) []string {
	names := make([]string, len(table))
	for i, l := range table {
		names[i] = nameOf(l)
	}
	return names
}
