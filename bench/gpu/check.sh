#!/bin/sh
# Everything that only a GPU can show, on a machine that needs no Go: `make gpu-bundle` builds
# the programs into bin/gpu.tar.gz; this script unpacks and runs them, prints a line for every part and
# keeps what came out in bench/gpu/out.
#
#   sh bench/gpu/check.sh [TO]     from the repository's root
#
# TO (default bench/gpu) gets summary.txt and out.tar.gz, all that is in bench/gpu/out but what is large.
#
# PARTS is what to run, in any number of pieces that find each other's files in bench/gpu/out:
# "tests train calibrate devices peers-gpu peers-cpu" by default; a part with a network, or a package's
# tests, is that alone, as in "peers-gpu:mlp" and "tests:cuda". PART_SECONDS (default 540) ends a part that takes longer.
# PYTHON names an interpreter with PyTorch and NumPy; without one the comparisons are left out. Its
# packages' libraries of NVIDIA, such as cuBLAS and cuDNN, are used where the system has none;
# LIBRARIES names other folders.
# MODELS names other networks, BATCH the batch of trainings, BATCHES those beside PyTorch, THREADS its
# cores, TRANSFORMERS networks that are calibrated besides, LIMIT=N how many images are trained on, JOULES about how long a class of kernels runs for its
# joules, PEERS flags for `dahl-bench peers`, CPU and GPU other lists of devices: so all of this also ends
# on the slow test build of the driver library (make gpu-rehearsal).
# Exit status: 0 if every part passed or was left out with a reason, 1 otherwise, 2 for bad input.
set -u
root=$(pwd)
out=$root/bench/gpu/out
to=${1:-bench/gpu}
python=${PYTHON:-python3}
bin=$root/bin/gpu
dahl=$bin/dahl bench=$bin/dahl-bench
models=${MODELS:-dahl-cnn lenet5 mlp cifar-cnn}
batch=${BATCH:-64}
batches=${BATCHES:-64,256,1024}
gpu=${GPU:-gpu}
cpu=${CPU:-cpu}
limit=${LIMIT:+--limit $LIMIT}
failed=0
parts=
for part in ${PARTS:-tests train calibrate devices peers-gpu peers-cpu}; do
  case ${part%%:*} in
  calibrate) parts="$parts $part" ;;
  tests) case $part in *:*) parts="$parts $part" ;; *) parts="$parts tests:cuda tests:execute tests:meter tests:conformance" ;; esac ;;
  train | devices | peers-gpu | peers-cpu)
    case $part in *:*) parts="$parts $part" ;; *) for model in $models; do parts="$parts $part:$model"; done ;; esac ;;
  *) echo "check.sh: PARTS: there is no part $part" >&2; exit 2 ;;
  esac
done
[ -x "$dahl" ] || [ ! -f bin/gpu.tar.gz ] || tar -C bin -xzf bin/gpu.tar.gz
[ -x "$dahl" ] || { echo "check.sh: $dahl is missing; build it with make gpu-bundle" >&2; exit 2; }
mkdir -p "$out" "$to"

say() { printf '%-34s %s\n' "$1" "$2" | tee -a "$out/summary.txt"; }

# part NAME COMMAND...: runs it with its output in out/NAME.txt, not for ever.
part() {
  name=$1; shift
  begin=$(date +%s)
  timeout -k 10 "${PART_SECONDS:-540}" "$@" > "$out/$name.txt" 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    say "$name" "passed in $(($(date +%s) - begin)) s"
  else
    say "$name" "FAILED with status $status after $(($(date +%s) - begin)) s; the end of $name.txt:"
    tail -n 8 "$out/$name.txt" | tee -a "$out/summary.txt"
    failed=1
  fi
}

# Where the libraries of PyTorch's packages lie, of which the loader knows nothing.
if [ -z "${LIBRARIES+set}" ]; then
  LIBRARIES=$("$python" -c '
import glob, os
import nvidia
print(":".join(d for at in nvidia.__path__ for d in sorted(glob.glob(os.path.join(at, "*", "lib")))))' 2> /dev/null)
fi
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+${LIBRARIES:+:}}$LIBRARIES"
torch() { "$python" -c 'import torch, numpy' 2> /dev/null; }

say "date" "$(date -u '+%Y-%m-%d %H:%M UTC'), parts$parts"
say "dahl" "$("$dahl" --version)"
if ! command -v nvidia-smi > /dev/null || ! nvidia-smi > "$out/nvidia-smi.txt" 2>&1; then
  say "GPU" "none that nvidia-smi shows"
else
  say "GPU" "$(nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit --format=csv,noheader | head -n 1)"
fi
"$dahl" kernels | grep '^library' | tee -a "$out/summary.txt"

# Kernels, driver and executor on the real PTX: the tests of a package that CI runs on its test
# driver, and how many were skipped.
tests() {
  case $1 in cuda) folder=execute/cuda ;; meter) folder=energy/meter ;; *) folder=$1 ;; esac
  case $1 in conformance) only=CUDA ;; *) only=. ;; esac # others want Go
  part "tests-$1" sh -c "cd '$root/$folder' && '$bin/$1.test' -test.v -test.run $only -test.timeout 8m"
  say "" "$(grep -c '^ *--- PASS' "$out/tests-$1.txt") passed, $(grep -c '^ *--- SKIP' "$out/tests-$1.txt") skipped, $(grep -c '^ *--- FAIL' "$out/tests-$1.txt") failed"
}

# A training on the GPU, and on both kinds of devices.
train() {
  for devices in "$gpu" "$cpu,$gpu"; do
    at=train-$1-$(echo "$devices" | tr ,: --)
    part "$at" "$dahl" execute --model "$2" --batch "$batch" --epochs 1 $limit --devices "$devices" --out "$out/runs/$at"
  done
}

# What everything costs here: all variants of the kernels of every network, and what they draw; for the
# batches beside PyTorch on the GPU alone, without joules.
calibrate() {
  for model in $models; do
    part "calibrate-$(name "$model")" "$dahl" calibrate --devices "$cpu,$gpu" --model "$model" --batch "$batch" --joules "${JOULES:-500ms}" --out "$out/platform.toml"
  done
  for model in $models; do
    part "calibrate-gpu-$(name "$model")" "$dahl" calibrate --devices "$gpu" --model "$model" --batch "$batches" --joules 0s --out "$out/platform.toml"
  done
  for model in ${TRANSFORMERS-gpt-tiny gpt-char}; do
    part "calibrate-gpu-$(name "$model")" "$dahl" calibrate --devices "$gpu" --model "$model" --batch "$batch" --joules 0s --out "$out/platform.toml"
  done
  [ ! -s "$out/platform.toml" ] || part kernels "$dahl" kernels "$out/platform.toml" --by-variant
}

# Predictions with it beside what is measured: time, joules, Gantt and comparison are in the run's folder.
devices() {
  if [ -s "$out/platform.toml" ]; then
    part "devices-$1" "$dahl" execute --platform "$out/platform.toml" --model "$2" --batch "$batch" --epochs 3 $limit --devices "$cpu,$gpu" --compare-devices --out "$out/runs/devices-$1"
  else
    say "devices-$1" "left out: there is no calibration; run the part calibrate"
  fi
}

# PyTorch on the same GPU, eager and compiled, in float32 and TF32; and on this machine's cores. Our side
# takes the fastest variants that the calibration knows.
peers_gpu() {
  calibrated=
  [ ! -s "$out/platform.toml" ] || calibrated="--platform $out/platform.toml"
  part "peers-gpu-$1" "$bench" peers --python "$python" --device cuda $calibrated --modes train --programs pytorch,pytorch-compile --settings default,graphs \
    --models "$2" --batches "$batches" --energy 1s ${PEERS:-} --out "$out/peers-gpu-$1.md"
}
peers_cpu() {
  part "peers-cpu-$1" "$bench" peers --python "$python" --programs pytorch --models "$2" --batches "${batches%%,*}" --threads "${THREADS:-$(nproc)}" --repeats 3 ${PEERS:-} --out "$out/peers-cpu-$1.md"
}

# name MODEL: of a network, or of its file.
name() { basename "$1" .toml; }

for each in $parts; do
  model=${each#*:}
  case $each in
  tests:*) tests "$model" ;;
  calibrate) calibrate ;;
  train:*) train "$(name "$model")" "$model" ;;
  devices:*) devices "$(name "$model")" "$model" ;;
  peers-gpu:*) if torch; then peers_gpu "$(name "$model")" "$model"; else say "$each" "left out: $python has no PyTorch and NumPy"; fi ;;
  peers-cpu:*) if torch; then peers_cpu "$(name "$model")" "$model"; else say "$each" "left out: $python has no PyTorch and NumPy"; fi ;;
  esac
done
cp "$out/summary.txt" "$to/summary.txt"
(cd "$out/.." && find out -type f -size -4096k | tar -czf - -T -) > "$to/out.tar.gz"
exit $failed
