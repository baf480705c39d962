// Command dahl-bench measures dahl itself: its speed beside others, what its tasks cost, and
// how near its predictions come. What came out is kept in the folder above, with command,
// machine and commit.
package main

import (
	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/execute"
	"dahl/nn"
	"dahl/platform"
	"dahl/train"
)

func main() { cli.Main(newRoot) }

func newRoot([]string) *cobra.Command {
	root := &cobra.Command{
		Use:   "dahl-bench",
		Short: "measure dahl itself",
		Long: `dahl-bench measures dahl: its speed beside others, what its tasks cost, and how near its
predictions come. Leave the machine alone meanwhile.`,
	}
	root.AddCommand(newAccuracy(), newTasks(), newSoak(), newPeers(), newGranularity(), newBatch())
	return root
}

// network loads a network and at most so many images that it trains on; 0: all.
func network(name string, limit int) (*nn.Model, train.Data, error) {
	m, err := cli.LoadModel(name)
	if err != nil {
		return nil, train.Data{}, err
	}
	d, err := train.OpenData(train.DefaultData(m), limit, 0)
	if err != nil {
		return nil, d, err
	}
	m, err = train.Fit(m, d.Train)
	return m, d, err
}

// cores is this machine with so many of them; 0: all.
func cores(n int) (*platform.Platform, error) {
	p, err := execute.Detect()
	if err != nil {
		return nil, err
	}
	return cli.WithWorkers(p, n)
}
