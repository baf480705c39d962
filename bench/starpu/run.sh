#!/bin/sh
# Builds the StarPU program where pkg-config finds StarPU, and runs dahl beside it.
# usage: run.sh DAHL-BENCH OUT [ARGUMENT of dahl-bench tasks]...
bench=$1 out=$2
shift 2
here=$(dirname "$0")
if ! pkg-config --exists starpu-1.3 2>/dev/null; then
	echo "StarPU (pkg-config starpu-1.3) is not installed: dahl runs alone" >&2
	exec "$bench" tasks "$@"
fi
mkdir -p "$out" || exit 1
${CC:-cc} -O2 -Wall -Wextra -o "$out/starpu-tasks" "$here/main.c" $(pkg-config --cflags --libs starpu-1.3) || exit 1
exec "$bench" tasks --starpu "$out/starpu-tasks" "$@"
