package main

import (
	"encoding/json"
	"math"
)

// number is one that may come out as NaN or infinite, which JSON has no word for: null.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if !isFinite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// same reports whether two numbers are equal, or neither is finite.
func (n number) same(other number) bool {
	return n == other || !isFinite(float64(n)) && !isFinite(float64(other))
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
