package messages

// Abilities of a node, as its agent finds them at its start. A market that needs
// one that a node lacks does not use that node for what needs it.
const (
	AbilityFreeze  = "freeze"  // suspends all of a task at once, by the cgroup freezer; else by SIGSTOP to its session
	AbilityMemory  = "memory"  // bounds a task's memory
	AbilityPids    = "pids"    // bounds a task's processes
	AbilityCPU     = "cpu"     // bounds a task's processor time
	AbilityUser    = "user"    // runs a task as another user
	AbilityPrivate = "private" // gives a task mount and network namespaces of its own
	// AbilitySharedEnv is the agent's: it understands [SharedEnv].
	AbilitySharedEnv = "shared-env"
)
