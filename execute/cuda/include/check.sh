#!/bin/sh
# Compares our cuda.h with a toolkit's: every value, the size of every struct and the place
# of every field, and every function under the name that the library has.
#
#	check.sh CUDA_HOME/include
#
# Names of values that the toolkit no longer has are listed, and no failure: what dahl needs
# of them fails to build.
set -eu
theirs=$1
here=$(dirname "$0")
: "${CC:=cc}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=$(printf '#include <cuda.h>\nCUDA_VERSION\n' | $CC -E -P -I"$theirs" - | tail -n 1)

# missing FILE: the names of its first column that the toolkit lacks. The macro shows
# functions in all versions, each under its own name.
all=-D__CUDA_API_VERSION_INTERNAL
missing() {
  { echo '#include <cuda.h>'; awk '{ print "static long long of_" $1 "(void) { return (long long)" $1 "; }" }' "$1"; } >"$dir/names.c"
  $CC $all -fsyntax-only -w -fmax-errors=0 -I"$theirs" "$dir/names.c" 2>&1 | sed -nE "s/.*error: .(\w+). undeclared.*/\1/p" | sort -u
}

# compare [FLAG]: our header, compiled with a flag.
compare() {
  # Of what the compiler sees, only our own lines, without those of system headers.
  printf '#include <cuda.h>\n' | $CC -E "$@" -I"$here" - | awk '/^# [0-9]/ { ours = index($0, "/cuda.h\"") } !/^#/ && ours' >"$dir/ours.i"
  # CUDA 12 gave this struct two more fields, and the functions that take it new names. The
  # mask holds the flags that its toolkit knows.
  [ "$version" -lt 12000 ] || sed -i 's/\bCUDA_KERNEL_NODE_PARAMS\b/&_v1/' "$dir/ours.i"
  tr ',{}' '\n\n\n' <"$dir/ours.i" | sed -nE 's/^ *(CU[A-Z0-9a-z_]+) = (-?[0-9]+) *$/\1 \2/p' | grep -v CU_CTX_FLAGS_MASK >"$dir/values"
  sed -nE 's/^#define (CU_[A-Z0-9_]+) (.*)$/\1 \2/p' "$here/cuda.h" >>"$dir/values"
  tr '\n' ' ' <"$dir/ours.i" | tr ';' '\n' | sed -nE 's/.*\b(CUresult +(cu[A-Z]\w*)\(.*\))$/\2 \1;/p' >"$dir/functions"
  missing "$dir/values" >"$dir/gone"
  missing "$dir/functions" >"$dir/unknown"
  [ ! -s "$dir/unknown" ] || { echo "check.sh: CUDA $version has no function" $(cat "$dir/unknown") >&2; exit 1; }
  {
    echo '#include <cuda.h>'
    echo '#include <stddef.h>'
    grep -vwFf "$dir/gone" "$dir/values" | awk '{ n = $1; $1 = ""; print "_Static_assert((long long)" n " == (long long)(" $0 "), \"" n "\");" }'
    # Structs, again under another name, and their fields one by one.
    awk '/^typedef struct .*\{$/ { body = ""; n = 0; inside = 1; next }
      inside && /^\}/ { inside = 0; name = $2; sub(/;/, "", name)
        print "typedef struct {" body "} our_" name ";\n_Static_assert(sizeof(our_" name ") == sizeof(" name "), \"size of " name "\");"
        for (i = 0; i < n; i++) print "_Static_assert(offsetof(our_" name ", " field[i] ") == offsetof(" name ", " field[i] "), \"" name "." field[i] "\");" }
      inside { body = body " " $0; line = $0; sub(/;.*/, "", line); sub(/\[[0-9]+\]/, "", line)
        k = split(line, part, ","); for (i = 1; i <= k; i++) { f = part[i]; sub(/ +$/, "", f); sub(/.*[ *]/, "", f); field[n++] = f } }' "$dir/ours.i"
    # A second declaration of a function that differs from the first is an error.
    cut -d ' ' -f 2- "$dir/functions"
  } >"$dir/check.c"
  [ "$(wc -l <"$dir/values")" -gt 200 ] && [ "$(wc -l <"$dir/functions")" -gt 150 ] && grep -q 'our_CUDA_MEMCPY2D)' "$dir/check.c" ||
    { echo "check.sh: values, functions or structs of our header were not found" >&2; exit 1; }
  $CC $all -fsyntax-only -Wall -fmax-errors=0 -I"$theirs" "$dir/check.c"
  echo "CUDA $version $*: $(grep -c '^_Static_assert' "$dir/check.c") values, sizes and places and $(wc -l <"$dir/functions") functions are ours; gone:" $(cat "$dir/gone")
}

compare
[ "$version" -lt 13000 ] || compare -DDAHL_CUDA_13
