#!/bin/sh
# Builds libcudnn.so.9 for tests into the directory that holds the driver library of the
# tests: build.sh DIR. Needs g++ alone.
set -eu
here=$(dirname "$0")
"${CXX:-g++}" -std=c++20 -O2 -g1 -ffp-contract=off -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
  -I"$here/../testdriver" -I"$here/../include" -shared -Wl,-soname,libcudnn.so.9 -Wl,-z,defs \
  -o "$1/libcudnn.so.9" "$here/cudnn.cc" "$here/convolution.cc" -L"$1" -l:libcuda.so.1
