#!/bin/sh
# Builds libcublas.so.12 and libcublasLt.so.12 for tests into the directory that holds the driver
# library of the tests: build.sh DIR. Needs g++ alone.
set -eu
here=$(dirname "$0")
for library in cublas cublasLt; do
  source=$(echo "$library" | tr L l).cc
  "${CXX:-g++}" -std=c++20 -O2 -g1 -ffp-contract=off -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
    -I"$here/../testdriver" -I"$here/../include" -shared -Wl,-soname,"lib$library.so.12" -Wl,-z,defs \
    -o "$1/lib$library.so.12" "$here/$source" -L"$1" -l:libcuda.so.1
done
