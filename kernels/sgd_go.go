package kernels

// sgdGo has a loop of its own for the step with momentum; the others are
// rare and left to the reference.
func sgdGo[T Float](call *Call) {
	momentum, nesterov, decay := T(call.Params[0]), call.Params[1] != 0, T(call.Params[2])
	if momentum == 0 || nesterov {
		sgdRef[T](call)
		return
	}
	w, g, v := &call.Args[0], &call.Args[1], &call.Args[3]
	lr := T(Data[float64](&call.Args[2])[0])
	outer, rows, run := runs(w, g, v)
	for r := range rows {
		ws := Data[T](w)[w.offset(outer, r):][:run]
		vs := Data[T](v)[v.offset(outer, r):][:run]
		for i, step := range Data[T](g)[g.offset(outer, r):][:run] {
			if decay != 0 {
				step += decay * ws[i]
			}
			step += momentum * vs[i]
			vs[i] = step
			ws[i] -= lr * step
		}
	}
}
