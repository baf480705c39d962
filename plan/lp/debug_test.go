package lp

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestDebug(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	lim, _ := strconv.Atoi(os.Getenv("LIM"))
	if n == 0 {
		return
	}
	p := layered(1, n, 5+n/70).problem(t, os.Getenv("E") != "")
	fmt.Println(p.Rows(), p.Columns(), len(p.terms.index))
	s := NewSolver(p)
	begin := time.Now()
	r, err := s.Solve(context.Background(), lim)
	fmt.Println(err, time.Since(begin), r.Status, r.Objective, r.Iterations)
	fmt.Println("L", len(s.factor.low.index), "U", len(s.factor.upperRows), "eta", len(s.factor.etas.index), s.factor.updates(), "kernel", len(s.factor.order))
}
