#!/bin/sh
# Builds the StarPU program where pkg-config finds StarPU, and runs the four graphs under its schedulers on two cores:
# lines of nanoseconds, until the last task was submitted and until the last one had run.
# usage: run.sh OUT
out=$1
here=$(dirname "$0")
if ! pkg-config --exists starpu-1.3 2>/dev/null; then
	echo "StarPU (pkg-config starpu-1.3) is not installed: dahl ran alone" >&2
	exit 0
fi
mkdir -p "$out" || exit 1
${CC:-cc} -O2 -Wall -Wextra -o "$out/starpu-tasks" "$here/main.c" $(pkg-config --cflags --libs starpu-1.3) || exit 1
for shape in independent chain buffers cholesky; do
	for scheduler in eager lws dmda; do
		echo "$shape, 100000 tasks, StarPU $scheduler:"
		STARPU_SCHED=$scheduler STARPU_NCPU=2 STARPU_SILENT=1 "$out/starpu-tasks" $shape 100000 5 || exit 1
	done
done
