package kernels

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
)

// A call in bfloat16 computes in float32, by the variants of float32. Operands in bfloat16 are copied to the workspace as float32 before, and results
// are rounded to the nearest bfloat16 behind. Operands of such a call that are float32 stay where they are. So every operation has bfloat16 by its code for
// float32, also an operation of another module. A call takes longer than in float32: dahl has no code for units that multiply bfloat16.

// widened is a variant that also takes calls in bfloat16.
func widened(v calls.Variant) calls.Variant {
	plain := v
	v.WorkspaceBytes = func(s *calls.Spec) (bytes int64) {
		if s.Type == dag.BFloat16 {
			bytes = calls.WideningBytes(s)
			s = calls.Widened(s)
		}
		if plain.WorkspaceBytes != nil {
			bytes += plain.WorkspaceBytes(s)
		}
		return bytes
	}
	if plain.Takes != nil {
		v.Takes = func(s *calls.Spec) error { return plain.Takes(calls.Widened(s)) }
	}
	if run := plain.Run32; run != nil {
		v.Run16 = func(c *calls.Call) {
			work := c.Work
			c.Widen()
			run(c)
			c.Narrow(work)
		}
	}
	if launches := plain.Launches; launches != nil && plain.Library == "" {
		v.Launches = func(c *calls.DeviceCall) []offload.Launch {
			if c.Type == dag.BFloat16 {
				return gpu.InFloat32(c, launches)
			}
			return launches(c)
		}
	}
	return v
}
