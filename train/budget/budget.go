package budget

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/platform/quantity"
)

// Limit is how much memory may still be taken, and who says so.
type Limit struct {
	Bytes int64
	Of    string // "the machine"
}

// unlimited is the limit where nothing is known.
var unlimited = Limit{math.MaxInt64, "nothing"}

// Need is one use of memory.
type Need struct {
	Bytes int64
	For   string
	Lower string // the option that lowers it, as in "a smaller --batch"; empty means none
}

// Sum adds up all needs.
func Sum(needs []Need) (sum int64) {
	for _, n := range needs {
		sum += min(n.Bytes, math.MaxInt64-sum)
	}
	return sum
}

// worthLowering is the part of all needs that one is lowered for.
const worthLowering = 10

// Check refuses needs that exceed a limit: the error lists all needs, the largest first, and the
// options that lower them.
func Check(needs []Need, of Limit) error {
	sum := Sum(needs)
	if sum <= of.Bytes {
		return nil
	}
	needs = slices.Clone(needs)
	slices.SortStableFunc(needs, func(a, b Need) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var each, lower []string
	for _, n := range needs {
		if n.Bytes == 0 {
			continue
		}
		each = append(each, n.For+" "+quantity.ShortBytes(n.Bytes))
		if n.Lower != "" && n.Bytes >= sum/worthLowering && !slices.Contains(lower, n.Lower) {
			lower = append(lower, n.Lower)
		}
	}
	advice := ""
	if len(lower) > 0 {
		advice = "; take " + strings.Join(lower, " or ")
	}
	return fmt.Errorf("%s of memory are needed and %s has %s left: %s%s", quantity.ShortBytes(sum), of.Of, quantity.ShortBytes(max(0, of.Bytes)), strings.Join(each, ", "), advice)
}
