package txn

// State is where a transaction is.
type State int8

// The states, as they are numbered in records.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
	Dead
	PrepareEpochFence
)

// stateNames are what clients call the states, by number.
func stateNames() [8]string {
	return [...]string{
		"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
	}
}

// String is the state's name as clients know it.
func (s State) String() string {
	if names := stateNames(); s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return "Unknown"
}

// StateNamed is the state of that name.
func StateNamed(name string) (State, bool) {
	for i, n := range stateNames() {
		if n == name {
			return State(i), true
		}
	}
	return 0, false
}

// ending says that the decision has fallen and markers are being written.
func (s State) ending() bool { return s == PrepareCommit || s == PrepareAbort }

// idle says that no transaction is open.
func (s State) idle() bool { return s == Empty || s == CompleteCommit || s == CompleteAbort }

// prepare and complete are the states of an end.
func prepare(commit bool) State {
	if commit {
		return PrepareCommit
	}
	return PrepareAbort
}

func (s State) complete() State {
	if s == PrepareCommit {
		return CompleteCommit
	}
	return CompleteAbort
}
