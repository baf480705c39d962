package schedule

// Policy plans where the tasks of a step run, in which order, and at will at which clocks, with which sleeps
// and versions of buffers. A policy of another module is a type with these two methods.
type Policy interface {
	Doc() Doc
	Plan(p *Problem) (*Plan, error)
}

// Doc is what a policy says of itself.
type Doc struct {
	Name     string // as --policy and plans have it
	Sentence string
	Paper    string
	// Online says that the policy decides while a program runs, where all tasks run in one memory.
	Online bool
}
