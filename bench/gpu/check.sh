#!/bin/sh
# Everything that only a GPU can show, on a machine that needs no Go: `make gpu-bundle` builds
# the programs into bin/gpu.tar.gz, this script unpacks and runs them, prints a line for every part and writes
# the tables to a folder (default bench/gpu/out).
#
#   sh bench/gpu/check.sh [OUT]     from the repository's root
#
# PYTHON names an interpreter with PyTorch and NumPy; without one the comparison is left out.
# QUICK=1 leaves out what takes minutes: calibration, PyTorch, accuracy. LIMIT=N trains on N images only,
# as on the slow test build of the driver library. MODELS names other networks.
# Exit status: 0 if every part passed or was left out with a reason, 1 otherwise.
set -u
root=$(pwd)
out=${1:-bench/gpu/out}
python=${PYTHON:-python3}
bin=$root/bin/gpu
dahl=$bin/dahl
models=${MODELS:-dahl-cnn lenet5 mlp cifar-cnn}
limit=${LIMIT:+--limit $LIMIT}
failed=0
[ -x "$dahl" ] || [ ! -f bin/gpu.tar.gz ] || tar -C bin -xzf bin/gpu.tar.gz
[ -x "$dahl" ] || { echo "bench/gpu/check.sh: $dahl is missing; build it with make gpu-bundle" >&2; exit 2; }
mkdir -p "$out"
: > "$out/summary.txt"

say() { printf '%-34s %s\n' "$1" "$2" | tee -a "$out/summary.txt"; }

# part NAME COMMAND...: runs it with its output in OUT/NAME.txt.
part() {
  name=$1; shift
  begin=$(date +%s)
  if "$@" > "$out/$name.txt" 2>&1; then
    say "$name" "passed in $(($(date +%s) - begin)) s"
  else
    status=$?
    say "$name" "FAILED with status $status; the end of $out/$name.txt:"
    tail -n 20 "$out/$name.txt" | tee -a "$out/summary.txt"
    failed=1
  fi
}

# gotests NAME FOLDER: the tests of a package, which says how many were skipped.
gotests() {
  part "$1" sh -c "cd '$root/$2' && '$bin/$1.test' -test.v -test.timeout 8m"
  say "" "$(grep -c '^ *--- PASS' "$out/$1.txt") passed, $(grep -c '^ *--- SKIP' "$out/$1.txt") skipped, $(grep -c '^ *--- FAIL' "$out/$1.txt") failed"
}

say "date" "$(date -u '+%Y-%m-%d %H:%M UTC')"
say "dahl" "$("$dahl" --version)"
if ! command -v nvidia-smi > /dev/null || ! nvidia-smi > "$out/nvidia-smi.txt" 2>&1; then
  say "GPU" "none that nvidia-smi shows"
else
  say "GPU" "$(nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit --format=csv,noheader | head -n 1)"
fi

# 1. Kernels, driver and executor on the real PTX: the tests that CI runs on its test driver.
gotests cuda execute/cuda
gotests execute execute
gotests energy energy
gotests dahl .

# 2. A training on the GPU, and on both kinds of devices.
train() { "$dahl" execute --model "$1" --batch 64 --epochs 1 $limit --devices "$2" --out "$out/$1-$3"; }
for model in $models; do
  part "train-$model-gpu" train $model gpu gpu
  part "train-$model-cpu-gpu" train $model cpu,gpu cpu-gpu
done

if [ -n "${QUICK:-}" ]; then
  say "calibrate, peers, accuracy" "left out: QUICK is set"
else
  # 3. What everything costs here, and then predictions with it: Gantt and comparison are in the run folders.
  part calibrate "$dahl" calibrate --devices cpu,gpu $(printf -- '--model %s ' $models) --batch 64 --out "$out/platform.toml"
  if [ -s "$out/platform.toml" ]; then
    for model in $models; do
      part "devices-$model" "$dahl" execute --platform "$out/platform.toml" --model $model --batch 64 --epochs 3 $limit --devices cpu,gpu --compare-devices --out "$out/compare-$model"
    done
  fi
  # 4. PyTorch on the same GPU, eager and compiled, float32 and TF32; and on this machine's cores.
  if "$python" -c 'import torch, numpy' 2> /dev/null; then
    part peers-gpu "$dahl" bench peers --python "$python" --device cuda --models "$(echo $models | tr " " ,)" --batches 64,256,1024 --energy 5s --out "$out/peers-gpu.md"
    part peers-cpu "$dahl" bench peers --python "$python" --models "$(echo $models | tr " " ,)" --batches 64 --threads 1,8 --repeats 3 --out "$out/peers-cpu.md"
  else
    say "peers" "left out: $python has no PyTorch and NumPy"
  fi
fi
exit $failed
