// Package grid is the command experiment of dahl: it checks the cells of a grid of runs, runs each as a process, reads
// their runs, draws figures, and repeats cells. Package [dahl/rundir/experiment] has the file of an experiment, its cells
// and the table of results; cells are commands of dahl.
//
// Read first: [New], and gridRun in run.go.
package grid
