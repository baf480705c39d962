package mpi

import (
	"os"
	"strconv"
)

// Launch is the place of a process among those that a launcher of MPI has started.
type Launch struct {
	Rank, Size           int
	LocalRank, LocalSize int // among the ranks of one machine; a size of 1 where the launcher does not say
	launcher             *launcher
}

// launcher says where a launcher of MPI tells a process its place, and whose libraries it serves.
type launcher struct {
	size, rank, localSize, localRank string   // environment variables
	libraries                        []string // files to try, in order
}

// The standard ABI is last: where there is a library of the launcher's own, it is the one that surely speaks its protocol.
var (
	openMPI = []string{"libmpi.so.40", "libmpi_abi.so.1", "libmpi_abi.so.0"}
	mpichs  = []string{"libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"}
)

// launchers are mpirun of Open MPI, mpiexec of MPICH, and Slurm's srun with PMIx, under which any library may run.
var launchers = []launcher{
	{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", openMPI},
	{"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", mpichs},
	{"SLURM_STEP_NUM_TASKS", "PMIX_RANK", "", "SLURM_LOCALID", append(openMPI[:1:1], mpichs...)},
}

// Launched tells the place of this process among those that a launcher of MPI has started. A process that was
// started without one has none.
func Launched() (l Launch, ok bool) { return launchedBy(os.Getenv) }

func launchedBy(env func(string) string) (Launch, bool) {
	for i := range launchers {
		by := &launchers[i]
		size, err := strconv.Atoi(env(by.size))
		rank, wrong := strconv.Atoi(env(by.rank))
		if err != nil || wrong != nil || rank < 0 || rank >= size {
			continue
		}
		l := Launch{Rank: rank, Size: size, LocalSize: 1, launcher: by}
		if n, err := strconv.Atoi(env(by.localSize)); err == nil && n > 0 {
			l.LocalSize = n
		}
		if n, err := strconv.Atoi(env(by.localRank)); err == nil && n >= 0 {
			l.LocalRank = n
		}
		return l, true
	}
	return Launch{}, false
}
