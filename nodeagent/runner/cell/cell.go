package cell

// Limits bounds what a task may use; 0: not bounded.
type Limits struct {
	Memory int64   // bytes, of all its processes together
	Pids   int64   // processes and threads
	CPU    float64 // processors
}

// Config configures [Open].
type Config struct {
	// Name is the group's name, the node's own on this machine.
	Name string
	// MayGainPrivileges leaves set-uid programs their power.
	MayGainPrivileges bool
}
