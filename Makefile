# dahl: everything a user or CI runs. Only Go is needed.

VERSION := 0.1.0
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DIRTY   := $(shell test -z "$$(git status --porcelain 2>/dev/null)" && echo false || echo true)
LDFLAGS := -X dahl/cmd/cli.version=$(VERSION) -X dahl/cmd/cli.commit=$(COMMIT) -X dahl/cmd/cli.dirty=$(DIRTY)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The default programs need no C compiler, and are the same bytes wherever they are built from
# one commit by one version of Go.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)"

.PHONY: mpi-test all demo test check asm asm-check ptx ptx-check ptx-assemble cuda cuda-driver cuda-test cuda-check cuda-header-check cudnn-header-check cublas-header-check gpu-bundle gpu-check gpu-rehearsal bench bench-tasks soak bench-peers bench-plan bench-blas judge update fuzz reproducible clean

all: bin/dahl

bin/dahl: FORCE
	$(GO_BUILD) -o $@ ./cmd/dahl

# The same program that loads an MPI library where mpirun starts it. It needs the C library of the system and no compiler.
bin/dahl-mpi: FORCE
	$(GO_BUILD) -tags mpi -o $@ ./cmd/dahl

# Tests over ranks that MPIRUN starts. For MPICH it is "mpirun.mpich -bind-to none". RANK_KILLS is how often a rank is killed at a random moment.
RANK_KILLS := 5
MPIRUN := mpirun --oversubscribe --bind-to none

mpi-test: bin/dahl bin/dahl-mpi
	DAHL_MPI_TEST=$(CURDIR)/bin/dahl DAHL_MPI_RUN="$(MPIRUN)" DAHL_MPI_KILLS=$(RANK_KILLS) go test -vet=off -count=1 -timeout 100m -run MPI -v ./cmd/dahl
	CGO_ENABLED=0 go vet -tags mpi ./execute/mpi

# What measures dahl itself.
bin/dahl-bench: FORCE
	$(GO_BUILD) -o $@ ./bench/dahlbench

.PHONY: FORCE
FORCE:

demo: bin/dahl
	./bin/dahl demo

# Long tests try fewer cases here and in CI, but for those of nn; make test SHORT= tries all, before a release and after a change of kernels.
SHORT    := -short
VET      :=
PACKAGES := ./...

test:
	go test $(SHORT) $(VET) -timeout 40m $(PACKAGES)

# Rewrites the assembly of kernels/simd.
asm:
	cd kernels/simd/gen && go run .

# Fails if the assembly is not what its generators write.
asm-check:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  (cd kernels/simd/gen && go vet ./... && go run . -dir "$$dir") && \
	  for f in kernels/simd/*_amd64.s; do \
	    [ ! -e "$$f" ] || [ -e "$$dir/$$(basename $$f)" ] || { echo "$$f: no generator writes it"; exit 1; }; done && \
	  for f in "$$dir"/*; do \
	    [ ! -e "$$f" ] || diff -q "$$f" "kernels/simd/$$(basename $$f)" || { echo "run make asm"; exit 1; }; done

# Compiles the CUDA kernels to PTX, which programs carry compressed: for compute capability 7.5,
# and for 8.0 where that gives another text. It needs clang, and no CUDA. Products are fused with
# sums only where a kernel says so. The probe's, for tests of what kernels stand on, likewise,
# and not compressed.
CLANG     ?= clang-19
PTX_DIR    = kernels/cuda
PROBE_DIR  = execute/cuda/testdata
PTX        = $(CLANG) -x cuda -std=c++20 --cuda-device-only --cuda-feature=+ptx78 -nocudainc -nocudalib \
               -Wall -Werror -Wno-unused-command-line-argument -O3 -ffp-contract=off -Ikernels/cuda -S

# $(call compile,SOURCES,DIR): comments and indentation, a fifth of the text, are left out.
compile = for f in $(1); do \
  to="$(2)/$$(basename $$f .cu)"; \
  $(PTX) --cuda-gpu-arch=sm_75 -o "$$to.sm_75.ptx" $$f & $(PTX) --cuda-gpu-arch=sm_80 -o "$$to.sm_80.ptx" $$f && wait $$! && \
  sed -i -E 's,[ \t]*//.*,,; s/^[ \t]+//; /^$$/d' "$$to.sm_75.ptx" "$$to.sm_80.ptx" || exit 1; \
  ! sed 's/^.target sm_75/.target sm_80/' "$$to.sm_75.ptx" | cmp -s - "$$to.sm_80.ptx" || rm "$$to.sm_80.ptx"; \
  grep -q '\.entry' "$$to.sm_75.ptx" || rm "$$to.sm_75.ptx"; done

# $(call decompress,DIR): all of the kernels' PTX.
decompress = for f in $(PTX_DIR)/*.ptx.gz; do gzip -dc "$$f" >"$(1)/$$(basename "$$f" .gz)" || exit 1; done

# Versions of gzip differ in what they write, so a file whose text is the same is kept.
ptx:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(call compile,kernels/cuda/*.cu,$$dir) && \
	  for f in "$$dir"/*.ptx; do \
	    to="$(PTX_DIR)/$$(basename "$$f").gz" && { gzip -dc "$$to" 2>/dev/null | cmp -s - "$$f" || gzip -9nc "$$f" >"$$to"; } || exit 1; done && \
	  for f in $(PTX_DIR)/*.ptx.gz; do [ -e "$$dir/$$(basename "$$f" .gz)" ] || rm "$$f"; done
	@$(call compile,execute/cuda/testdriver/probe.cu,$(PROBE_DIR))

# Fails if the PTX is not what the sources give.
ptx-check:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/kernels" "$$dir/probe" "$$dir/carried" && \
	  $(MAKE) -s ptx PTX_DIR="$$dir/kernels" PROBE_DIR="$$dir/probe" && gzip -d "$$dir"/kernels/*.gz && $(call decompress,$$dir/carried) && \
	  { diff -rq "$$dir/kernels" "$$dir/carried" && diff -rq "$$dir/probe" $(PROBE_DIR); } || \
	  { echo "run make ptx (with $$($(CLANG) --version | head -1))"; exit 1; }

# Assembles the PTX for some devices by NVIDIA's assembler (CUDA 11.8 or newer), which also
# finds what clang lets through, and lists the kernels that spill registers.
PTXAS ?= ptxas

ptx-assemble:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(call decompress,$$dir) && for f in "$$dir"/*.ptx; do for sm in 75 80 90; do \
	  case $$f-$$sm in *.sm_80.ptx-75) continue;; esac; \
	  $(PTXAS) -v -arch=sm_$$sm -o /dev/null $$f 2>&1 | awk -v sm=$$sm ' \
	    /error|fatal/ { print; failed = 1 } \
	    match($$0, /entry function .[a-z0-9_]+/) { name = substr($$0, RSTART+16, RLENGTH-16); n++ } \
	    /bytes spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print "sm_" sm, name ":" $$0; failed = 1 } \
	    END { exit failed || n == 0 }' || { echo "$$(basename $$f) does not assemble for sm_$$sm without spills"; exit 1; }; done; done

# dahl with CUDA: against the toolkit's header where CUDA_HOME names one (11.8 to 13), else
# against our own. What is linked is a table of jumps that loads the driver library when it is
# asked for (execute/cuda/stub), so the program needs libc only and starts everywhere.
CUDA_HOME    ?=
CUDA_INCLUDE := $(if $(CUDA_HOME),$(CUDA_HOME)/include,$(CURDIR)/execute/cuda/include)
CUDA_FLAGS   := -I$(CURDIR)/execute/cuda/include13 -I$(CUDA_INCLUDE)
CUDA_ENV     := CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations $(CUDA_FLAGS)" CGO_LDFLAGS="-L$(CURDIR)/bin/cuda"

cuda: bin/dahl-cuda

bin/dahl-cuda: bin/cuda/libcuda.a FORCE
	$(CUDA_ENV) go build -tags cuda -trimpath -ldflags "$(LDFLAGS)" -o $@ ./cmd/dahl
	@! nm -D --undefined-only $@ | grep ' cu[A-Z]' || { echo "$@: the driver library would be needed to start it"; rm $@; exit 1; }

bin/cuda/libcuda.a: $(wildcard execute/cuda/stub/*) $(CUDA_INCLUDE)/cuda.h
	sh execute/cuda/stub/make.sh bin/cuda $(CUDA_FLAGS)

# Our header beside the toolkit's: values, structs, functions.
cuda-header-check:
	@[ -f "$(CUDA_HOME)/include/cuda.h" ] || { echo "cuda-header-check: CUDA_HOME names no toolkit" >&2; exit 2; }
	@sh execute/cuda/include/check.sh "$(CUDA_HOME)/include"

# Our declarations of cuDNN beside its header: CUDNN_HOME and CUDA_HOME say where they are.
CUDNN_HOME ?=
cudnn-header-check:
	@[ -f "$(CUDNN_HOME)/include/cudnn.h" ] || { echo "cudnn-header-check: CUDNN_HOME names no cuDNN" >&2; exit 2; }
	$(CXX) -std=c++20 -fsyntax-only -w -I"$(CUDNN_HOME)/include" -I"$(CUDA_HOME)/include" execute/cuda/testdnn/header_check.cc

# Our declarations of cuBLAS and cuBLASLt beside theirs, where CUDA_HOME names a toolkit.
cublas-header-check:
	@[ -f "$(CUDA_HOME)/include/cublasLt.h" ] || { echo "cublas-header-check: CUDA_HOME names no toolkit with cuBLAS" >&2; exit 2; }
	$(CXX) -std=c++20 -fsyntax-only -w -I"$(CUDA_HOME)/include" execute/cuda/testblas/header_check.cc

# The driver library of the tests, on the CPU, with cuBLAS, cuDNN and NVML, and what runs on it.
cuda-driver:
	@$(MAKE) -s -j2 -C execute/cuda/testdriver OUT=$(CURDIR)/bin/testdriver
	@sh execute/cuda/testblas/build.sh $(CURDIR)/bin/testdriver
	@sh execute/cuda/testdnn/build.sh $(CURDIR)/bin/testdriver
	@sh energy/testnvml/build.sh $(CURDIR)/bin/testdriver

# Tests with CUDA in their names, and all of the packages that know nothing else.
cuda-test: bin/cuda/libcuda.a cuda-driver
	$(CUDA_ENV) LD_LIBRARY_PATH=$(CURDIR)/bin/testdriver go test -timeout 40m -vet=off -tags cuda ./execute/cuda/... ./kernels/cuda ./energy/meter
	$(CUDA_ENV) LD_LIBRARY_PATH=$(CURDIR)/bin/testdriver go test -timeout 40m -vet=off -tags cuda -run CUDA ./execute/... ./cmd/dahl ./bench/dahlbench ./train ./conformance

# What compiles only with CUDA, also as CUDA 13 has it, and a program that starts without.
CUDA_CODE = $$(grep -rl --include='*.go' '^//go:build.*cuda' . | xargs -n 1 dirname | sort -u)

cuda-check: cuda
	$(CUDA_ENV) go vet -tags cuda $(CUDA_CODE)
	$(CUDA_ENV) go run $(STATICCHECK) -tags cuda $(CUDA_CODE)
	CGO_ENABLED=1 CGO_CFLAGS="-DDAHL_CUDA_13 -I$(CURDIR)/execute/cuda/include13 -I$(CURDIR)/execute/cuda/include" \
	  CGO_LDFLAGS="-L$(CURDIR)/bin/cuda" go vet -tags cuda ./execute/cuda
	./bin/dahl-cuda --version

# The programs that show on a GPU what only a GPU can show, for a machine that needs no Go:
# carry the repository with bin/gpu.tar.gz there and run bench/gpu/check.sh.
gpu-bundle: bin/cuda/libcuda.a
	@mkdir -p bin/gpu
	$(CUDA_ENV) go build -tags cuda -trimpath -ldflags "$(LDFLAGS) -s -w" -o bin/gpu/dahl ./cmd/dahl
	$(CUDA_ENV) go build -tags cuda -trimpath -ldflags "$(LDFLAGS) -s -w" -o bin/gpu/dahl-bench ./bench/dahlbench
	for p in execute/cuda execute energy/meter conformance; do \
	  name=$$(basename $$(cd $$p && go list .)); \
	  $(CUDA_ENV) go test -c -tags cuda -trimpath -ldflags "-s -w" -o bin/gpu/$$name.test ./$$p || exit 1; done
	tar -C bin -czf bin/gpu.tar.gz gpu

# Kernels, driver, executor, meters, predictions and PyTorch beside dahl, on this machine's GPU.
# bench/gpu/out keeps what came out.
gpu-check: gpu-bundle
	@PYTHON="$(PYTHON)" sh bench/gpu/check.sh

# The same on the driver library of the tests, without the tests themselves: that the script
# goes through, and what it would print. Its times mean nothing.
gpu-rehearsal: gpu-bundle cuda-driver
	@mkdir -p bin/rehearsal
	@PYTHON="$(PYTHON)" LIBRARIES= LD_LIBRARY_PATH=$(CURDIR)/bin/testdriver MODELS=bench/gpu/tiny.toml TRANSFORMERS= BATCH=8 BATCHES=8 LIMIT=64 THREADS=1 \
	  CPU=cpu:1 GPU=gpu0 JOULES=100ms PEERS="--repeats 2 --repetition 30ms --energy 200ms" PARTS="train calibrate devices peers-gpu peers-cpu" \
	  sh bench/gpu/check.sh bin/rehearsal

# Fails if dahl built from another folder is not the same bytes. COLD=1 compiles everything
# anew there, which takes a minute; without it the compiled packages come from Go's cache.
COLD ?=

reproducible:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/elsewhere" && \
	  tar -cf - --exclude=./.git --exclude=./bin . | tar -xf - -C "$$dir/elsewhere" && \
	  $(GO_BUILD) -o "$$dir/here" ./cmd/dahl && \
	  (cd "$$dir/elsewhere" && $(if $(COLD),GOCACHE="$$dir/cache") $(GO_BUILD) -o "$$dir/there" ./cmd/dahl) && \
	  cmp "$$dir/here" "$$dir/there"

# The short tests of kernels and of what trains by them, once for each narrower instruction set that this machine can
# pretend to have. `make test` compares the variants of all levels that the machine has, whichever is the default. Go's cache of
# test results does not look at GODEBUG.
LEVELS   ?= $(if $(shell grep -m 1 -o avx512f /proc/cpuinfo),cpu.avx512f=off) cpu.avx512f=off,cpu.avx2=off
COMPUTES ?= ./kernels ./kernels/cpu/... ./kernels/simd/...
TRAINS   ?= ./nn ./train ./execute

# In these tests nothing or the reference alone computes, which is the same with every instruction set, or all variants that the machine has, as in make test.
BY_REFERENCE = ^(TestVariantsAgainstReference|TestGradientsAgainstFiniteDifferences|TestTilesMakeTheWhole|TestOperations|TestWork|TestMicroBatchesEqualTheStep|TestUpdatesAtOnce|TestClippedSteps|TestMicroBatchesHaveNoBarrier|TestRecomputedSteps|TestModelsLower|TestPasses|TestBoxesAreMinimal)$$

.PHONY: levels
levels:
	@for off in $(LEVELS); do echo "GODEBUG=$$off"; \
	  GODEBUG=$$off go test -short -vet=off -count=1 -skip '$(BY_REFERENCE)' $(COMPUTES) $(TRAINS) || exit 1; \
	  GODEBUG=$$off go test -short -vet=off -count=1 -run 'Loss|Resume|Rerun' ./cmd/dahl || exit 1; done

# What starts goroutines beside package execute. The race detector would find nothing in other packages.
CONCURRENT = ./train ./plan ./plan/best ./plan/certificate ./nn/data ./energy/meter ./parallel ./cmd/cli ./cmd/dahl/watch

# These tests count allocations in what others run, search many times in the ways that others do, or start no goroutines.
NO_RACES = ^(TestFewFiles|TestMoreNodesAreNeverWorse|TestBoundsHoldForVariantsAndSleep|TestBoundsWithDeadline|TestSteadyStepsAllocateNothing|TestSteadyStepsOnDevicesAllocateNothing|TestNeverAbovePolicies|TestMoreDevicesAreNoWorse|TestMutantsOfLeaves|TestBoundsOfKnownOptima|TestSteadyBounds|TestPartsOfBatch|TestNear|TestEstimatesAgree|TestExplainUnits|TestExplainSpare|TestExplainComparable|TestMoreUnitsAreNoWorse|TestInherit|TestBrief|TestExplainEnded|TestMemoryOfStrategies|TestPeriodsBelowPossible|TestSetWeightsInPlace)$$

# The three parts need nothing of each other: with make -j2 -O their waits overlap.
.PHONY: whole lint races
check: whole lint races

whole:
	@$(MAKE) test VET=-vet=off PACKAGES="$$(go list ./... | grep -v '/nn$$' | tr '\n' ' ')"
	go test -vet=off -timeout 40m ./nn

lint: asm-check reproducible
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	GOOS=darwin GOARCH=arm64 go vet ./...

races:
	go test -timeout 40m -race -vet=off -shuffle=on -skip '$(NO_RACES)' ./execute/...
	go test -timeout 40m -race -vet=off -shuffle=on -short -skip '$(NO_RACES)' $(CONCURRENT)

bench:
	go test -run='^$$' -bench=. -benchmem ./...

# What a task costs beside its kernel, and on StarPU where pkg-config finds it.
bench-tasks:
	go test -run '^$$' -bench Tasks ./bench
	@sh bench/starpu/run.sh bin

# Thousands of steps of training, on cores and on an emulated GPU beside one, during which
# nothing may grow; trainings that are killed KILLS times and come to their weights all the
# same; every file operation failing once; and command lines of which a word or a file is changed,
# MUTANTS of them: some minutes each.
KILLS   ?= 500
MUTANTS ?= 20000

soak:
	DAHL_SOAK=$(KILLS) go test ./cmd/dahl -run '^(TestKilled|TestKilledAtEveryStep|TestEveryFileOperationFails)$$' -count=1 -v -timeout 0
	DAHL_MUTANTS=$(MUTANTS) go test ./cmd/dahl -run '^TestMutants$$' -count=1 -v -timeout 0
	DAHL_SOAK=1 go test ./bench -run '^TestSoak$$' -count=1 -v -timeout 0

# CASES plans of random networks on random machines beside plans of fewer devices, of policies and of fewer nodes, none of which
# may be better: an hour of processor time.
CASES ?= 200

judge:
	DAHL_NEVER_WORSE=$(CASES) go test ./conformance -run '^TestNeverWorse$$' -count=1 -v -timeout 0

# The same trainings by dahl and by PyTorch, compared step by step: some ten minutes.
# DATA holds MNIST's files; bench/parity/RESULTS.md keeps what came out.
PYTHON ?= /usr/bin/python3
DATA   ?= ../shared/data

parity: bin/dahl
	@sh bench/parity/run.sh "$(PYTHON)" "$(DATA)"
	@go run ./bench/parity bench/parity/out

# vgg and resnet likewise, on random images: 18 minutes on two busy cores.
.PHONY: parity-deep
parity-deep: bin/dahl
	@"$(PYTHON)" bench/parity/deep.py --dahl bin/dahl

# LeNet-5's final accuracies by both programs, from the weights and in the orders of both: an hour on two busy cores.
# bench/parity/seeds/README.md keeps what came out.
.PHONY: parity-seeds
parity-seeds: bin/dahl
	@sh bench/parity/seeds/run.sh "$(PYTHON)" "$(DATA)"

# Training and inference beside PyTorch, torch.compile and JAX: about a minute for each of 36 cells.
bench-peers: bin/dahl-bench
	mkdir -p bench/peers/out
	./bin/dahl-bench peers --python "$(PYTHON)" --out bench/peers/out/RESULTS.md

# Plans for server beside their bounds, choices made by hand and a hill climb, for bench/plan.md: hours.
bench-plan: bin/dahl bin/dahl-bench
	./bin/dahl-bench plan --climb 568 --out bin/plan.md

# Convolutions beside oneDNN as PyTorch has it, on one thread: some minutes.
bench-blas:
	mkdir -p bin
	go test -c -o bin/kernels.test ./kernels
	"$(PYTHON)" bench/blas/torch_convolutions.py bin/kernels.test

# Rewrites golden files and the notice of third parties; read the difference before committing it.
update:
	go test ./dag ./plots -update
	go test ./cmd/dahl -run TestTutorial -update
	go test ./conformance -run TestNotices -update

# Mutates the inputs of every fuzz target for FUZZTIME, a time or a number such as 2000x. The
# committed ones run with the tests. At most 10 executions go into making a new input small:
# Go's default is a minute, in which nothing else happens. A target that executes fewer than
# FUZZFLOOR inputs does not fuzz, and fails.
FUZZTIME  ?= 10s
FUZZFLOOR ?= 2000

fuzz:
	@mkdir -p bin/fuzz; for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  bin=$(CURDIR)/bin/fuzz/$$(basename $$pkg); go test -c -fuzz=Fuzz -o $$bin.test $$pkg || exit 1; \
	  for target in $$($$bin.test -test.list '^Fuzz'); do \
	    log=$$(cd $$pkg && $$bin.test -test.run='^$$' -test.fuzz="^$$target\$$" -test.fuzztime=$(FUZZTIME) \
	      -test.fuzzminimizetime=10x -test.fuzzcachedir=$$bin 2>&1) || { echo "$$pkg $$target"; echo "$$log"; exit 1; }; \
	    execs=$$(echo "$$log" | sed -n 's/.*execs: \([0-9]*\).*/\1/p' | tail -n 1); \
	    echo "$$pkg $$target: $$execs executions"; \
	    [ "$$execs" -ge $(FUZZFLOOR) ] || { echo "$$target: fewer than $(FUZZFLOOR) executions in $(FUZZTIME)"; exit 1; }; \
	  done; done

clean:
	rm -rf bin dahl-demo
