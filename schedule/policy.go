package schedule

// Policy plans the workers and the order of the tasks of a step, and at will their clocks, sleeps and versions of
// buffers. A policy of another module is a type with these two methods.
type Policy interface {
	Doc() Doc
	Plan(p *Problem) (*Plan, error)
}

// Doc describes a policy.
type Doc struct {
	Name     string // as --policy and plans have it
	Sentence string
	Paper    string
	// Online says that the policy decides while a program runs, where all tasks run in one memory.
	Online bool
}
