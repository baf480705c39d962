#!/bin/sh
# Builds libcublas.so.12 for tests into the directory that holds the driver library of the
# tests: build.sh DIR. Needs g++ alone.
set -eu
here=$(dirname "$0")
"${CXX:-g++}" -std=c++20 -O2 -g1 -ffp-contract=off -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
  -I"$here/../testdriver" -I"$here/../include" -shared -Wl,-soname,libcublas.so.12 -Wl,-z,defs \
  -o "$1/libcublas.so.12" "$here/cublas.cc" -L"$1" -l:libcuda.so.1
