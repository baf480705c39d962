package recording

// A stepReport is a step as it was recorded.
type stepReport struct {
	span              // from the first beginning of its tasks to the last end
	name              string
	unexplained       int64 // of all threads
	onPath, gapOnPath int64 // of the tasks that decided when the step ended
}

// reports says what was recorded of each step.
func (t *timeline) reports() []stepReport {
	all := make([]stepReport, len(t.steps))
	last := make([]int, len(t.steps))
	for i, s := range t.steps {
		all[i] = stepReport{name: s.name, span: span{s.start, s.start}}
		last[i] = -1
	}
	for id := range t.tasks {
		k := &t.tasks[id]
		if k.step == beforeSteps {
			continue
		}
		s := &all[k.step]
		if k.end >= s.end {
			s.end, last[k.step] = k.end, id
		}
		if k.op == hostUnexplained {
			s.unexplained += k.end - k.start
		}
	}
	for i := range all {
		t.followPath(&all[i], last[i], i)
	}
	return all
}

// wholeReport is about all steps as one.
func (t *timeline) wholeReport() stepReport {
	s := stepReport{span: span{t.start, t.start}}
	last := -1
	for id := range t.tasks {
		k := &t.tasks[id]
		if k.end >= s.end {
			s.end, last = k.end, id
		}
		if k.op == hostUnexplained {
			s.unexplained += k.end - k.start
		}
	}
	t.followPath(&s, last, everyStep)
	return s
}

// followPath goes back from the last task of a step. Of the tasks before a task, it takes the one that ended last.
func (t *timeline) followPath(s *stepReport, id, step int) {
	for id >= 0 {
		k := &t.tasks[id]
		if step != everyStep && k.step != step {
			return
		}
		s.gapOnPath += k.gap
		if k.op == hostUnexplained {
			s.onPath += k.end - k.start
		}
		id = -1
		for _, p := range k.after {
			if id < 0 || t.tasks[p].end > t.tasks[id].end {
				id = p
			}
		}
	}
}
