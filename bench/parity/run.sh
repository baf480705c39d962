#!/bin/sh
# Trains LeNet-5, dahl's CNN, a network with branches and one of depthwise convolutions with dahl and with PyTorch from the same weights,
# in the same order, in both types. Called by `make parity`: run.sh PYTHON DATA
# from the root of the repository. What it writes is compared by main.go.
set -eu
python=$1 data=$2
here=bench/parity
out=$here/out
epochs=5 seed=2

"$python" -c 'import numpy, torch' 2>/dev/null ||
	{ echo "parity: $python has no PyTorch; name one that has: make parity PYTHON=..." >&2; exit 1; }
for images in train t10k; do
	ls "$data/$images"*-images-idx3-ubyte* >/dev/null 2>&1 ||
		{ echo "parity: no MNIST files $images*-images-idx3-ubyte[.gz] in $data; name their directory: make parity DATA=..." >&2; exit 1; }
done

# torch NETWORK TYPE RUN [OPTION...]
torch() {
	dir=$out/$1.$2.$3 network=$1 type=$2
	shift 3
	mkdir -p "$dir"
	"$python" $here/torch_parity.py train --model "$network" --init "$out/$network.init.npz" --data "$data" \
		--epochs $epochs --dtype "$type" --steps-csv "$dir/steps.csv" --epochs-csv "$dir/epochs.csv" "$@"
}

# dahl NETWORK TYPE RUN BATCH RATE WORKERS
dahl() {
	model=$1
	test ! -f "nn/examples/$model.toml" || model=nn/examples/$model.toml
	./bin/dahl execute --model "$model" --init "$out/$1.init.npz" --data "$data" --shuffle=false --epochs $epochs \
		--dtype "$2" --batch "$4" --optimizer sgd --lr "$5" --momentum 0 --workers "$6" --out "$out/$1.$2.$3"
}

# train NETWORK BATCH RATE: the runs of one network. Float32 gets more runs of
# PyTorch in other orders: there the spread is not negligible.
train() {
	"$python" $here/torch_parity.py init --model "$1" --seed $seed --out "$out/$1.init.npz"
	for type in float64 float32; do
		dahl "$1" $type dahl "$2" "$3" 2
		dahl "$1" $type dahl1 "$2" "$3" 1
		cmp "$out/$1.$type.dahl/steps.csv" "$out/$1.$type.dahl1/steps.csv"
		torch "$1" $type torch
		orders="1 2"
		test $type = float64 || orders="1 2 3 4 5 6 7 8"
		for order in $orders; do
			torch "$1" $type "order$order" --order "$order"
		done
	done
}

rm -rf $out
mkdir -p $out
train dahl-cnn 10 1e-3
train lenet5 32 0.1
train residual 32 0.1
train depthwise 32 0.1
