package kernels

// loadGo divides each of the 256 byte values once instead of every element.
func loadGo[T Float](call *Call) {
	x, images := &call.Args[0], &call.Args[1]
	var quotient [256]T
	for v := range quotient {
		quotient[v] = T(v) / T(call.Params[0])
	}
	outer, rows, run := runsFrom(1, x, images)
	for i, source := range Data[int32](&call.Args[2]) {
		to := Data[T](x)[i*x.Stride[0]:]
		from := Data[uint8](images)[int(source)*images.Stride[0]:]
		for r := range rows {
			out := to[x.offsetFrom(1, outer, r):][:run]
			for j, v := range from[images.offsetFrom(1, outer, r):][:run] {
				out[j] = quotient[v]
			}
		}
	}
}
