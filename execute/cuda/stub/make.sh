#!/bin/sh
# Makes libcuda.a, a stand-in to link against: every function of the driver API is a jump
# through a table that is filled when the library is loaded, at the first call of
# dahl_cuda_start. So one binary starts with or without NVIDIA's driver, and asks libc only.
#
#	make.sh DIR [compiler flags that find cuda.h]
#
# The functions are those that the header declares, under the names the library has.
set -eu
out=$1
shift
here=$(dirname "$0")
mkdir -p "$out"
: "${CC:=cc}" "${AR:=ar}"

printf '#include <cuda.h>\n' | $CC "$@" -E -P -x c - |
  tr '\n' ' ' | grep -oE '\bcu[A-Z][A-Za-z0-9_]* ?\(' | tr -d ' (' | sort -u >"$out/symbols.txt"
[ "$(wc -l <"$out/symbols.txt")" -gt 100 ] || { echo "stub: cuda.h declares no driver API" >&2; exit 1; }

sed 's/.*/FUNCTION(&)/' "$out/symbols.txt" >"$out/symbols.inc"
$CC -O2 -Wall -fPIC -I"$out" -c "$here/lazy.c" -o "$out/lazy.o"
rm -f "$out/libcuda.a"
$AR rcs "$out/libcuda.a" "$out/lazy.o"
