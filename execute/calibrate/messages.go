package calibrate

import (
	"context"
	"fmt"

	"dahl/execute"
	"dahl/platform"
	"dahl/platform/fit"
)

// Message sizes go up to mostMessageBytes, and each is sent messageRounds times.
const (
	mostMessageBytes = 4 << 20
	messageRounds    = 100
)

// Messages measures messages between the nodes of a cluster, each with the next one, and fits them by latency and bandwidth. Rank 0 returns the
// platform with these on its links. The other ranks take part and return nothing.
func Messages(ctx context.Context, p *platform.Platform, ranks *execute.Ranks) (*platform.Platform, []platform.MeasuredWay, error) {
	var sizes []int64
	for n := int64(leastCopyBytes); n <= mostMessageBytes; n *= copyFactor {
		sizes = append(sizes, n)
	}
	times, err := execute.MessageTimes(ctx, p, ranks, sizes, messageRounds)
	if err != nil || ranks.Rank > 0 {
		return nil, nil, err
	}
	hosts, nodes := p.Hosts(), execute.WorkingNodes(p)
	var ways []platform.MeasuredWay
	for pair, of := range times {
		line, ok := fit.OfCopies(sizes, of)
		if !ok {
			return nil, nil, fmt.Errorf("calibrate: messages between %s and %s took no time", p.Nodes[nodes[pair]].Name, p.Nodes[nodes[pair+1]].Name)
		}
		ways = append(ways, platform.MeasuredWay{From: hosts[nodes[pair]], To: hosts[nodes[pair+1]], Fit: line})
	}
	q, err := p.WithWays(ways)
	return q, ways, err
}
