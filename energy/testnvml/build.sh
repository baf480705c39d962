#!/bin/sh
# Builds the test library into a directory: build.sh DIR. Needs a C compiler and, for
# the types, the header that comes with the module go-nvml.
set -eu
here=$(dirname "$0")
header=$(cd "$here" && go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml
mkdir -p "$1"
# The header's own old names would become those of version 2.
"${CC:-cc}" -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -DNVML_NO_UNVERSIONED_FUNC_DEFS -I"$header" \
  -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o "$1/libnvidia-ml.so.1" "$here/nvml.c" -lm
