// Compare measures this machine for a network, predicts an epoch, trains it, and says where
// the prediction was off.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"dahl/execute"
	"dahl/nn"
	"dahl/plan"
	"dahl/train"
)

func main() {
	ctx := context.Background()
	model, err := nn.ModelByName("digits-cnn")
	if err != nil {
		log.Fatal(err)
	}
	data, err := train.OpenData("digits", 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	machine, err := execute.Detect()
	if err != nil {
		log.Fatal(err)
	}
	measured, err := train.Calibrate(ctx, model, data, train.Options{}, train.Calibration{
		CalibrateOptions: execute.CalibrateOptions{Platform: machine, MaxTime: 2 * time.Second}})
	if err != nil {
		log.Fatal(err)
	}
	w, err := train.New(model, data, measured.Platform, train.Options{})
	if err != nil {
		log.Fatal(err)
	}
	predicted, err := w.Predict(ctx)
	if err != nil {
		log.Fatal(err)
	}
	run, err := w.Train(ctx)
	if err != nil {
		log.Fatal(err)
	}
	c, err := plan.Compare(ctx, w.Decision, predicted.Main, run.Measured.Main)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("step: %.0f us predicted, %.0f us measured: %+.1f %%, of which kernels %+.1f %% and scheduling %+.1f %%\n",
		1e6*c.Step.Predicted, 1e6*c.Step.Measured, c.Step.ErrorPercent, c.KernelErrorPercent, c.SchedulingErrorPercent)
	for _, k := range c.Kernels[:3] {
		fmt.Printf("%s: %.0f %% of the time, predicted %+.1f %%\n", k.Op, 100*k.Share, k.Sum.ErrorPercent)
	}
}
