// Package must ends a test where a call fails outside the subject of the test, and lists the parts that a text lacks.
package must

import (
	"strings"
	"testing"
)

// Do ends the test with the error of a call. Nil means that the call has succeeded.
func Do(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Get takes what a call returns, Get(f())(t), and gives its value. An error ends the test.
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Get2 is Get for calls that return two values.
func Get2[T, U any](v T, w U, err error) func(testing.TB) (T, U) {
	return func(t testing.TB) (T, U) {
		t.Helper()
		Do(t, err)
		return v, w
	}
}

// Contain fails the test for each text that another one lacks.
func Contain(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
