package execute

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// Target says which kernels can run tasks, on any machine or on this one. It is a
// [schedule.Target].
type Target struct {
	// Variant is asked for by name: each operation uses it on every kind of device that has it.
	// Empty means that no variant is asked for.
	Variant string
	// ThisMachine names the default variants of this machine's processor, for a program that will be
	// executed. Otherwise they stay open, so that a prediction does not depend on the machine
	// that makes it.
	ThisMachine bool
	// Kernels are the operations. Nil means the table of package kernels. A network with layers of its
	// own brings another one, see nn.Model.Kernels.
	Kernels *kernels.Table
}

// Offers lists the variants of a task's operation for a kind of device, the default first. Host
// operations (feed, fetch) run on processors only.
func (t Target) Offers(g *dag.Graph, id dag.TaskID, kind string) []schedule.Offer {
	task := &g.Tasks[id]
	of, _ := platform.KindByName(kind) // one that is not known runs no code
	table := cmp.Or(t.Kernels, builtin())
	k, ok := table.Lookup(task.Op)
	switch {
	case !ok || k.Host && of.Processor:
		return []schedule.Offer{{Host: ok}}
	case k.Host:
		return nil
	}
	standard := k.DefaultFor(of.Code)
	if standard == nil {
		return nil
	}
	spec, align := specOf(g, id), int64(alignBytes)
	if !of.Processor {
		align = driver.Align
	}
	valid := table.Validate(spec) == nil // otherwise New says what is wrong
	if valid && standard.Takes != nil && standard.Takes(spec) != nil {
		return nil // nor does any other kernel of ours
	}
	offer := func(v *calls.Variant) schedule.Offer {
		o := schedule.Offer{Variant: v.Name}
		if valid && v.WorkspaceBytes != nil && v.Fits(spec) == nil {
			o.WorkspaceBytes = roundUpTo(v.WorkspaceBytes(spec), align)
		}
		return o
	}
	if asked, ok := k.VariantFor(of.Code, task.Type, t.Variant); ok && (!valid || asked.Takes == nil || asked.Takes(spec) == nil) {
		return []schedule.Offer{offer(asked)}
	}
	offers := []schedule.Offer{{}}
	if t.ThisMachine {
		offers[0] = offer(standard)
	}
	for i := range k.Variants {
		v := &k.Variants[i]
		if !v.RunsOn(of.Code) || t.ThisMachine && v == standard || valid && v != standard && v.Fits(spec) != nil {
			continue
		}
		o := offer(v)
		offers = append(offers, o)
		if !t.ThisMachine && v.Library == "" && (v == standard || v.Takes == nil) { // any of these may be the default
			offers[0].WorkspaceBytes = max(offers[0].WorkspaceBytes, o.WorkspaceBytes)
		}
	}
	return offers
}

// Runnable is a platform as this program executes it. A device with a memory of its own gets one
// copy engine in each direction if it does not say how many it has. Runnable refuses a platform
// unless its workers are cores of one memory and devices with memories of their own.
func Runnable(p *platform.Platform) (*platform.Platform, error) {
	if err := CheckWorkers(p); err != nil {
		return nil, err
	}
	q := *p
	q.Devices = slices.Clone(p.Devices)
	for d := range q.Devices {
		if device := &q.Devices[d]; !q.IsHost(device.Memory) {
			device.CopyEnginesIn, device.CopyEnginesOut = max(1, device.CopyEnginesIn), max(1, device.CopyEnginesOut)
		}
	}
	return &q, q.Complete()
}
