#!/bin/sh
# Trains LeNet-5 from the weights and in the orders of both programs, and compares the accuracies.
# Called by `make parity-seeds`: run.sh PYTHON DATA from the root of the repository. Trainings that
# are there are not run again. The accuracies go to seeds.csv, the tables to standard output.
set -eu
python=$1 data=$2
here=bench/parity/seeds
out=$here/out

"$python" -c 'import numpy, scipy, torch' 2>/dev/null ||
	{ echo "parity-seeds: $python has no PyTorch or no scipy; name one that has: make parity-seeds PYTHON=..." >&2; exit 1; }

mkdir -p $out
go run ./$here/draws $out 60 5 10000
"$python" $here/seeds_train.py draw --out $out
"$python" $here/seeds_train.py train --program torch --data "$data" --out $out >&2 &
torch=$!
"$python" $here/seeds_train.py train --program dahl --data "$data" --out $out >&2
wait $torch
"$python" $here/seeds_train.py collect --out $out >$here/seeds.csv
"$python" $here/seeds_report.py $here/seeds.csv $out
