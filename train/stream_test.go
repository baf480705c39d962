package train

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/platform"
	"dahl/schedule/policy"
	"dahl/train/budget"
	"dahl/train/metrics"
)

// write writes a file below a directory.
func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)))
}

// zipped is data compressed.
func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write(data))(t)
	must.Do(t, z.Close())
	return b.Bytes()
}

// splits are 37 training and 11 test samples of 1×7×5 of 3 classes as IDX files, plain and
// compressed, as pictures, and made by the program.
func splits(t *testing.T) map[string]string {
	t.Helper()
	const height, width = 7, 5
	plain, gz, pictures := t.TempDir(), t.TempDir(), t.TempDir()
	for split, n := range map[string]int{"train": 37, "t10k": 11} {
		samples, labels := []byte{0, 0, 8, 3}, []byte{0, 0, 8, 1}
		for _, e := range []int{n, height, width} {
			samples = binary.BigEndian.AppendUint32(samples, uint32(e))
		}
		labels = binary.BigEndian.AppendUint32(labels, uint32(n))
		for i := range n {
			picture := image.NewGray(image.Rect(0, 0, width, height))
			for p := range picture.Pix {
				picture.Pix[p] = byte(i*i*p*31 + 97*(i%3) + n)
			}
			samples, labels = append(samples, picture.Pix...), append(labels, byte(i%3))
			var file bytes.Buffer
			must.Do(t, png.Encode(&file, picture))
			write(t, pictures, fmt.Sprintf("%s/%c/%02d.png", map[string]string{"train": "train", "t10k": "test"}[split], 'a'+i%3, i), file.Bytes())
		}
		write(t, plain, split+"-images-idx3-ubyte", samples)
		write(t, plain, split+"-labels-idx1-ubyte", labels)
		write(t, gz, split+"-images-idx3-ubyte.gz", zipped(t, samples))
		write(t, gz, split+"-labels-idx1-ubyte", labels)
	}
	return map[string]string{"plain": plain, "gz": gz, "pictures": pictures, "synthetic": "synthetic:1x7x5:37:3"}
}

// streaming is a training of 3 epochs of 7 steps of 5 samples, one of 2, and 3 of 5 and one of 1 of
// the test.
func streaming(t *testing.T, data, devices, name string, o Options) *Workload {
	t.Helper()
	m := must.Get(models.ByName("mlp"))(t)
	d := must.Get(OpenData(data, 0, 0))(t)
	p := must.Get(load(t, "emulated").Select(devices))(t)
	o.Policy = must.Get(policy.ByName(name))(t)
	o.Batch, o.Epochs, o.Seed, o.Shuffle = 5, 3, 7, true
	return must.Get(New(m, d, p, o))(t)
}

// TestStreamedEqualsHeld: samples that are read while a training goes on, whatever their format,
// give the same losses and weights to the last bit as samples in memory: on cores and a device, by
// a plan and a policy that decides at run time, and where every step is a run of its own.
func TestStreamedEqualsHeld(t *testing.T) {
	all := splits(t)
	for _, c := range []struct {
		data, devices, policy string
		keep                  int
	}{
		{"plain", "cpu:2", "heft", 0}, {"gz", "cpu:2", "heft", 0}, {"pictures", "cpu:2", "heft", 0}, {"synthetic", "cpu:2", "heft", 0},
		{"plain", "cpu:2", "heft", 1}, {"plain", "cpu:2", "heft", 3}, {"plain", "cpu:2", "eager", 0},
		{"plain", "cpu:1,gpu", "heft", 2}, {"plain", "cpu:1,gpu", "dmdar", 0}, {"plain", "gpu", "heft", 0},
	} {
		var trained [2]*Trainer
		for i, stream := range []bool{false, true} {
			w := streaming(t, all[c.data], c.devices, c.policy, Options{Stream: stream, KeepEvery: c.keep})
			var err error
			if trained[i], err = w.Train(t.Context()); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if held := w.Data.Train.Samples != nil; held == stream {
				t.Errorf("%+v: streamed %v, samples in memory %v", c, stream, held)
			}
		}
		held, streamed := trained[0], trained[1]
		if held.WeightsHash() != streamed.WeightsHash() || !slices.Equal(held.Steps, streamed.Steps) {
			t.Errorf("%+v: weights %.12s streamed and %.12s in memory; losses\n%v\n%v", c, streamed.WeightsHash(), held.WeightsHash(), streamed.Steps, held.Steps)
		}
		for e := range held.Epochs {
			a, b := &held.Epochs[e], &streamed.Epochs[e]
			if !a.Tested || a.TestLoss != b.TestLoss || a.TestAccuracy != b.TestAccuracy || a.Loss != b.Loss {
				t.Errorf("%+v: epoch %d: %+v streamed and %+v in memory", c, e+1, *b, *a)
			}
		}
	}
}

// TestStreamDiverges: a streamed training that diverges is repeated to the last finite weights, as
// one in memory is.
func TestStreamDiverges(t *testing.T) {
	data := splits(t)["plain"]
	var said [2]string
	var weights [2]string
	for i, stream := range []bool{false, true} {
		w := streaming(t, data, "cpu:2", "heft", Options{Stream: stream, Optimizer: nn.SGD{LearningRate: 1e6}})
		tr, err := w.Train(t.Context())
		if !errors.As(err, new(*Divergence)) {
			t.Fatalf("error %v, want a divergence", err)
		}
		said[i], weights[i] = err.Error(), tr.WeightsHash()
	}
	if said[0] != said[1] || weights[0] != weights[1] {
		t.Errorf("streamed %q, weights %.12s; in memory %q, %.12s", said[1], weights[1], said[0], weights[0])
	}
}

// TestStreamLosesDevice: a streamed training whose device is lost goes on to the weights of one
// without a loss.
func TestStreamLosesDevice(t *testing.T) {
	data := splits(t)["plain"]
	whole := must.Get(streaming(t, data, "cpu:1,gpu", "heft", Options{KeepEvery: 1}).Train(t.Context()))(t)
	w := streaming(t, data, "cpu:1,gpu", "heft", Options{Stream: true, KeepEvery: 1})
	gpu, _ := w.Platform.DeviceByName("gpu")
	w.Platform.Devices[gpu].Fault = platform.DeviceFault{After: 50, Kind: platform.FaultLost}
	tr := must.Get(w.Train(t.Context()))(t)
	if len(tr.Losses) != 1 || tr.WeightsHash() != whole.WeightsHash() {
		t.Errorf("losses %+v, weights %.12s; want one loss and %.12s", tr.Losses, tr.WeightsHash(), whole.WeightsHash())
	}
}

// TestStreamEnds: a file that shrinks between two epochs ends a training with a line that names
// it, which is no mistake of the input; an interruption while samples are read ends it too.
func TestStreamEnds(t *testing.T) {
	dir := splits(t)["plain"]
	file := filepath.Join(dir, "train-images-idx3-ubyte")
	w := streaming(t, dir, "cpu:2", "heft", Options{Stream: true})
	tr, err := w.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.OnEpoch = func(m metrics.Epoch, _ time.Duration) {
		if m.Epoch == 1 {
			if err := os.Truncate(file, 500); err != nil {
				t.Error(err)
			}
		}
	}
	err = tr.Run(t.Context())
	if err == nil || errors.As(err, new(InputError)) || !strings.Contains(err.Error(), file+": 500 bytes, and 1311 when") { // 16 + 37·7·5
		t.Errorf("error %v, want one of the run with the file and its sizes", err)
	}
	if len(tr.Epochs) != 1 {
		t.Errorf("%d epochs are whole, want 1", len(tr.Epochs))
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := &stream{ready: make(chan *batchPart)}
	if err := never.copyNext(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of an interrupted read", err)
	}
}

// TestAfford: a training that does not fit with its data in memory is streamed, and one that does
// not fit even so is refused, with what needs the most first.
func TestAfford(t *testing.T) {
	w := streaming(t, "synthetic:1x7x5:100003:3", "cpu:2", "heft", Options{ContinueOnNaN: true, Record: 1})
	if w.Options.Stream {
		t.Skip("this machine has no 50 MB left")
	}
	held := budget.Sum(w.needs())
	if err := w.afford(budget.Limit{Bytes: held, Of: "the test"}); err != nil || w.Options.Stream {
		t.Errorf("%v, streamed %v, of a training that just fits", err, w.Options.Stream)
	}
	if err := w.afford(budget.Limit{Bytes: held - 1, Of: "the test"}); err != nil || !w.Options.Stream {
		t.Fatalf("%v, streamed %v, of a training whose data are too large", err, w.Options.Stream)
	}
	streamed := budget.Sum(w.needs())
	if samples := int64(2 * 100003 * 35); streamed > held-samples+2*aheadBytes(5*35)+1<<20 { // both splits
		t.Errorf("%d bytes streamed and %d in memory, of which %d are images", streamed, held, samples)
	}
	err := w.afford(budget.Limit{Bytes: streamed - 1, Of: "the test"})
	if !errors.As(err, new(InputError)) || !strings.Contains(err.Error(), "the test has") || !strings.Contains(err.Error(), "weights and optimiser state") {
		t.Errorf("error %v, want one of the input that says what needs how much", err)
	}
}
