package cell

// Limits bounds what a task may use; 0: not bounded.
type Limits struct {
	Memory int64   // bytes, of all its processes together
	Pids   int64   // processes and threads
	CPU    float64 // processors
}

// DefaultPids bounds the processes and threads of a task of which nothing is said,
// at once where that costs nothing, and else as often as somebody looks.
const DefaultPids = 4096
