package kernels

import "math"

// The bits of +Inf and of the sign. Positive numbers are those with bits from 1 to
// infinity; NaN is beyond infinity in either sign.
const (
	infinity32 uint32 = 0x7f800000
	infinity64 uint64 = 0x7ff0000000000000
	sign32     uint32 = 1 << 31
	sign64     uint64 = 1 << 63
)

// reluGo calls row for each contiguous run.
func reluGo[T Float](call *Call, row func(y []T, mask []uint8, x []T)) {
	y, mask, x := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(y, mask, x)
	for r := range rows {
		row(Data[T](y)[y.offset(outer, r):][:run],
			Data[uint8](mask)[mask.offset(outer, r):][:run],
			Data[T](x)[x.offset(outer, r):][:run])
	}
}

// reluDxGo calls row for each contiguous run.
func reluDxGo[T Float](call *Call, row func(dx, dy []T, mask []uint8)) {
	dx, dy, mask := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(dx, dy, mask)
	for r := range rows {
		row(Data[T](dx)[dx.offset(outer, r):][:run],
			Data[T](dy)[dy.offset(outer, r):][:run],
			Data[uint8](mask)[mask.offset(outer, r):][:run])
	}
}

func reluGo32(call *Call)   { reluGo(call, reluRow32) }
func reluGo64(call *Call)   { reluGo(call, reluRow64) }
func reluDxGo32(call *Call) { reluDxGo(call, reluDxRow32) }
func reluDxGo64(call *Call) { reluDxGo(call, reluDxRow64) }

// reluRow32 has no branch on the data, which a processor mispredicts half the time:
// y is the bits of x or none of them.
func reluRow32(y []float32, mask []uint8, x []float32) {
	y, mask = y[:len(x)], mask[:len(x)]
	for i, v := range x {
		bits := math.Float32bits(v)
		var positive, nan uint8
		if bits-1 < infinity32 {
			positive = 1
		}
		if bits&^sign32 > infinity32 {
			nan = 1
		}
		mask[i] = positive
		y[i] = math.Float32frombits(bits & -uint32(positive|nan))
	}
}

// reluRow64 is reluRow32 in float64.
func reluRow64(y []float64, mask []uint8, x []float64) {
	y, mask = y[:len(x)], mask[:len(x)]
	for i, v := range x {
		bits := math.Float64bits(v)
		var positive, nan uint8
		if bits-1 < infinity64 {
			positive = 1
		}
		if bits&^sign64 > infinity64 {
			nan = 1
		}
		mask[i] = positive
		y[i] = math.Float64frombits(bits & -uint64(positive|nan))
	}
}

// reluDxRow32 keeps the bits of dy or none of them, so that 0 hides an infinite dy.
func reluDxRow32(dx, dy []float32, mask []uint8) {
	dx, mask = dx[:len(dy)], mask[:len(dy)]
	for i, v := range dy {
		dx[i] = math.Float32frombits(math.Float32bits(v) & -uint32(mask[i]))
	}
}

// reluDxRow64 is reluDxRow32 in float64.
func reluDxRow64(dx, dy []float64, mask []uint8) {
	dx, mask = dx[:len(dy)], mask[:len(dy)]
	for i, v := range dy {
		dx[i] = math.Float64frombits(math.Float64bits(v) & -uint64(mask[i]))
	}
}
