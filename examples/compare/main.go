// Compare measures this machine for a network, predicts an epoch, trains it, and says where
// the prediction was off.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"dahl/execute/calibrate"
	"dahl/execute/hardware"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/train"
)

func main() {
	ctx := context.Background()
	model := must(models.ByName("digits-cnn"))
	data := must(train.OpenData("digits", 0, 0))
	machine := must(hardware.Detect())
	measured := must(train.Calibrate(ctx, model, data, train.Options{}, train.Calibration{
		Options: calibrate.Options{Platform: machine, MaxTime: 2 * time.Second}}))
	w := must(train.New(model, data, measured.Platform, train.Options{}))
	predicted := must(w.Predict(ctx))
	run := must(w.Train(ctx))
	c := must(plan.Compare(ctx, w.Decision, predicted.Main, run.Measured.Main))
	fmt.Printf("step: %.0f us predicted, %.0f us measured: %+.1f %%, of which kernels %+.1f %% and scheduling %+.1f %%\n",
		1e6*c.Step.Predicted, 1e6*c.Step.Measured, c.Step.ErrorPercent, c.KernelErrorPercent, c.SchedulingErrorPercent)
	for _, k := range c.Kernels[:3] {
		fmt.Printf("%s: %.0f %% of the time, predicted %+.1f %%\n", k.Op, 100*k.Share, k.Sum.ErrorPercent)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
