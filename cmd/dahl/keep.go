package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"slices"
	"time"

	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/nn/npz"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/metrics"
)

// keeper keeps a training in its run directory while it goes on: tables that grow, and
// checkpoints.
type keeper struct {
	dir      *rundir.Dir
	manifest *record.Manifest // as the training began
	begun    time.Time
	ctx      context.Context // of the training
	kept     kept
	lost     []train.DeviceLoss // before the training was resumed
}

// kept is the note in a checkpoint about the tables in the same directory, and about the recipe that decided
// the numbers until then.
type kept struct {
	Steps  keptTable     `json:"steps"`
	Epochs keptTable     `json:"epochs"`
	Recipe record.Recipe `json:"recipe"`
}

// keptTable is a table as far as it was written.
type keptTable struct {
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`

	hash hash.Hash // of those bytes; nil means of no byte
}

// add counts rows.
func (k *keptTable) add(rows int, text []byte) {
	if k.hash == nil {
		k.hash = sha256.New()
	}
	k.hash.Write(text)
	k.Rows, k.Bytes, k.SHA256 = k.Rows+rows, k.Bytes+int64(len(text)), fmt.Sprintf("%x", k.hash.Sum(nil))
}

// worthKeeping is the age from which an interrupted training is not replaced by the next run.
const worthKeeping = time.Minute

// checkpoint keeps a checkpoint. Where it cannot, the older ones stay, and the training goes on
// unless it is to end.
func (k *keeper) checkpoint(t *train.Trainer, c *train.Checkpoint) error {
	err := k.write(t, c)
	if err != nil && k.ctx.Err() == nil {
		slog.Warn("a checkpoint could not be kept; the training goes on", "after_step", c.Steps, "error", err)
		return nil
	}
	return err
}

func (k *keeper) write(t *train.Trainer, c *train.Checkpoint) error {
	if err := k.tables(t); err != nil {
		return err
	}
	var err error
	if c.Note, err = json.Marshal(&k.kept); err != nil {
		return err
	}
	if !k.manifest.Keep && time.Since(k.begun) >= worthKeeping {
		k.manifest.Keep = true
		if err := k.dir.Restate(k.manifest); err != nil {
			return err
		}
	}
	return k.dir.WriteCheckpoint(c.Steps, c.Encode)
}

// tables adds the rows that have come since.
func (k *keeper) tables(t *train.Trainer) error {
	return cmp.Or(
		addRows(k.dir, record.StepsFile, &k.kept.Steps, t.Steps, metrics.NewStepWriter, (*metrics.Writer).Step),
		addRows(k.dir, record.EpochsFile, &k.kept.Epochs, t.Epochs, metrics.NewEpochWriter, (*metrics.Writer).Epoch))
}

// addRows adds the rows that a table does not have yet.
func addRows[T any](d *rundir.Dir, name string, kept *keptTable, rows []T, open func(io.Writer, bool) (*metrics.Writer, error), write func(*metrics.Writer, T) error) error {
	var b bytes.Buffer
	w, err := open(&b, kept.Bytes > 0)
	for i := kept.Rows; err == nil && i < len(rows); i++ {
		err = write(w, rows[i])
	}
	if err = cmp.Or(err, w.Flush()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	f, err := d.Append(name, kept.Bytes)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = cmp.Or(err, f.Sync(), f.Close()); err == nil {
		kept.add(len(rows)-kept.Rows, b.Bytes())
	}
	return err
}

// rowsOf reads the kept rows of a table back, and refuses rows that were changed.
func rowsOf[T any](d *rundir.Dir, name string, kept *keptTable, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, kept.Bytes))
	var now keptTable
	if now.add(kept.Rows, text); err == nil && now.SHA256 != kept.SHA256 {
		err = fmt.Errorf("damaged: its first %d bytes are not those of when the checkpoint was made", kept.Bytes)
	}
	var rows []T
	if err == nil {
		rows, err = read(bytes.NewReader(text))
	}
	if err == nil && len(rows) != kept.Rows {
		err = fmt.Errorf("it has %d rows, and the checkpoint says %d; the checkpoint is damaged", len(rows), kept.Rows)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	*kept = now
	return rows, nil
}

// commit writes what the training came to and makes it the run of the directory. The training may
// have ended with an error: it returns that, or its own.
func (k *keeper) commit(t *trainer, runErr error) error {
	m := t.w.newManifest(k.manifest.Command) // of the last leg
	m.Keep, m.Data, m.Resumed = k.manifest.Keep && !t.Complete, k.manifest.Data, k.manifest.Resumed
	at, err := "", t.PredictLegs(context.WithoutCancel(k.ctx))
	if err == nil {
		err = k.outcome(t, m)
	}
	if err == nil && errors.As(runErr, new(*train.Divergence)) {
		err = k.dir.DropCheckpoints() // it would diverge again
	}
	if err == nil {
		at, err = k.dir.Commit(m)
	}
	if err == nil && runErr != nil {
		err = fmt.Errorf("%w; what was done is in %s", runErr, at)
		if at == k.dir.Path() {
			return err
		}
		if steps, _ := k.dir.Checkpoints(); len(steps) > 0 {
			return fmt.Errorf("%w; go on with dahl execute --resume %s", err, k.dir.Path())
		}
		return fmt.Errorf("%w, since %s keeps the complete run before it", err, k.dir.Path())
	}
	if steps, _ := k.dir.Checkpoints(); err != nil && len(steps) > 0 {
		err = fmt.Errorf("%w; the training goes on after step %d with dahl execute --resume %s", err, steps[0], k.dir.Path())
	}
	return errors.Join(runErr, err)
}

// outcome writes the files of an executed run.
func (k *keeper) outcome(t *trainer, m *record.Manifest) error {
	m.Complete, m.GPUs, m.Diverged = t.Complete, t.gpus, t.Diverged
	m.WeightsHash = t.WeightsHash()
	if n := t.Runner.Issue(0); n.Tasks > 0 {
		m.Issue = &n
	}
	if n := len(t.Steps); n > 0 {
		m.FinalLoss = record.Number(t.Steps[n-1].Loss)
	}
	if err := k.tables(t.Trainer); err != nil {
		return err
	}
	if err := k.dir.Write(record.WeightsFile, func(out io.Writer) error { return npz.Encode(out, t.Weights()) }); err != nil {
		return err
	}
	ctx := context.WithoutCancel(k.ctx)
	if err := writeLegs(ctx, k.dir, t); err != nil {
		return err
	}
	m.Losses = slices.Concat(k.lost, t.Losses)
	if t.Measured.Main != nil {
		return t.w.writeLeg(ctx, k.dir, &t.Leg, t.summarize())
	}
	return nil
}

// keeper begins the run directory of a training, or goes on with it.
func (f *executeFlags) keeper(ctx context.Context, t *trainer) (*keeper, error) {
	m, err := t.begins(ctx, "execute")
	if err != nil {
		return nil, err
	}
	k := &keeper{manifest: m, begun: time.Now(), ctx: ctx}
	if in := f.from; in != nil {
		k.dir, k.kept, k.lost = in.dir, in.kept, in.progress.Losses
		m.Keep, m.Resumed = in.manifest.Keep, append(in.manifest.Resumed, in.since(m))
		if err = in.follows(m); err == nil {
			err = k.dir.Restate(m)
		}
	} else {
		k.dir, err = record.CreateRun(f.Out.Dir, m)
	}
	if err == nil && t.w.opts.Checkpoint != flags.NeverCheckpoint {
		t.OnCheckpoint = func(c *train.Checkpoint) error { return k.checkpoint(t.Trainer, c) }
	}
	k.kept.Recipe = m.Recipe()
	return k, err
}

// begins is the manifest of a training as it begins.
func (t *trainer) begins(ctx context.Context, command string) (m *record.Manifest, err error) {
	m = t.w.newManifest(command)
	m.Data, err = record.HashData(ctx, t.w.Data.Train, t.w.Data.Test)
	return m, err
}
