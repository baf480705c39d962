package main

import (
	"strings"

	"dahl/nn"
	"dahl/schedule"
)

// oneOf lists names as a sentence does: "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// policyNames are the policies that need no plan file.
func policyNames() []string {
	var names []string
	for _, info := range schedule.Policies() {
		if info.Static != nil || info.Dynamic != nil {
			names = append(names, info.Name)
		}
	}
	return names
}

func optimizerNames() []string {
	var names []string
	for _, info := range nn.Optimizers() {
		names = append(names, info.Name)
	}
	return names
}
