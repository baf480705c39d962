package hardware

import (
	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/host"
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
	k, ok := t.Kernels.Lookup(task.Op)
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
	spec, align := calls.SpecOf(task, func(b dag.BufferID) dag.Buffer { return g.Buffers[b] }), int64(host.Align)
	if !of.Processor {
		align = driver.Align
	}
	valid := t.Kernels.Validate(spec) == nil // otherwise New says what is wrong
	if valid && standard.Takes != nil && standard.Takes(spec) != nil {
		return nil // nor does any other kernel of ours
	}
	offer := func(v *calls.Variant) schedule.Offer {
		o := schedule.Offer{Variant: v.Name}
		if valid && v.WorkspaceBytes != nil && v.Fits(spec) == nil {
			o.WorkspaceBytes = (v.WorkspaceBytes(spec) + align - 1) &^ (align - 1)
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
