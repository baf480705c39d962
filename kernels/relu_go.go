package kernels

import "math"

// reluGo32 has no branch on the data, which a processor mispredicts half the time:
// y is the bits of x or none of them.
func reluGo32(call *Call) {
	y, mask, x := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(y, mask, x)
	for r := range rows {
		ys := Data[float32](y)[y.offset(outer, r):][:run]
		ms := Data[uint8](mask)[mask.offset(outer, r):][:run]
		for i, v := range Data[float32](x)[x.offset(outer, r):][:run] {
			var positive, kept uint8
			if v > 0 {
				positive = 1
			}
			if !(v <= 0) { // positive or NaN
				kept = 1
			}
			ms[i] = positive
			ys[i] = math.Float32frombits(math.Float32bits(v) & -uint32(kept))
		}
	}
}

// reluGo64 is reluGo32 in float64.
func reluGo64(call *Call) {
	y, mask, x := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(y, mask, x)
	for r := range rows {
		ys := Data[float64](y)[y.offset(outer, r):][:run]
		ms := Data[uint8](mask)[mask.offset(outer, r):][:run]
		for i, v := range Data[float64](x)[x.offset(outer, r):][:run] {
			var positive, kept uint8
			if v > 0 {
				positive = 1
			}
			if !(v <= 0) { // positive or NaN
				kept = 1
			}
			ms[i] = positive
			ys[i] = math.Float64frombits(math.Float64bits(v) & -uint64(kept))
		}
	}
}

// reluDxGo32 keeps the bits of dy or none of them, so that 0 hides an infinite dy.
func reluDxGo32(call *Call) {
	dx, dy, mask := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(dx, dy, mask)
	for r := range rows {
		dxs := Data[float32](dx)[dx.offset(outer, r):][:run]
		dys := Data[float32](dy)[dy.offset(outer, r):][:run]
		for i, m := range Data[uint8](mask)[mask.offset(outer, r):][:run] {
			dxs[i] = math.Float32frombits(math.Float32bits(dys[i]) & -uint32(m))
		}
	}
}

// reluDxGo64 is reluDxGo32 in float64.
func reluDxGo64(call *Call) {
	dx, dy, mask := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(dx, dy, mask)
	for r := range rows {
		dxs := Data[float64](dx)[dx.offset(outer, r):][:run]
		dys := Data[float64](dy)[dy.offset(outer, r):][:run]
		for i, m := range Data[uint8](mask)[mask.offset(outer, r):][:run] {
			dxs[i] = math.Float64frombits(math.Float64bits(dys[i]) & -uint64(m))
		}
	}
}
