package agent

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// These are the abilities of a node. Its agent finds them out when it starts. A market does not use a node for tasks
// that need an ability that the node lacks.
const (
	AbilityFreeze  = "freeze"  // suspends a whole task at once with the cgroup freezer; otherwise its session gets SIGSTOP
	AbilityMemory  = "memory"  // bounds a task's memory
	AbilityPids    = "pids"    // bounds a task's processes
	AbilityCPU     = "cpu"     // bounds a task's processor time
	AbilityUser    = "user"    // runs tasks as users other than the node's own
	AbilityApart   = "apart"   // gives the tasks of an account processes, shared memory and temporary files of their own, and hides the site's state
	AbilityPrivate = "private" // the same as AbilityApart, and tasks have no network
	// AbilityNamespaces says that tasks may make user namespaces, for containers.
	AbilityNamespaces = "namespaces"
	// AbilityOutdated says that tasks run with an older build or configuration than the agent's, until the node is
	// idle. Abilities that begin with "build-" and "tasks-" identify the build and the configuration in use.
	AbilityOutdated = "outdated"
	// A node reports one of these abilities when it takes no tasks, to say why. The reasons are: its disk is almost
	// full, its executor does not answer, or its working GPUs are not the GPUs that it offers.
	AbilityFull    = "disk-full"
	AbilityStalled = "executor-stalled"
	AbilityGPUs    = "gpus-changed"
	// AbilitySharedEnv says that the agent understands [SharedEnv].
	AbilitySharedEnv = "shared-env"
)

// Containment returns how well a node with these abilities separates tasks from its site and from one another. 0 means
// not at all; higher is better.
func Containment(abilities []messages.Name) int {
	user, apart := slices.Contains(abilities, AbilityUser), slices.Contains(abilities, AbilityApart)
	switch {
	case slices.Contains(abilities, AbilityPrivate):
		return 4
	case user && apart:
		return 3
	case user:
		return 2
	case apart:
		return 1
	}
	return 0
}

// Reach returns a phrase for the files, processes and networks that a task on a node with these abilities can use.
func Reach(abilities []messages.Name) string {
	return [...]string{
		"EVERYTHING of the user who runs the node: the site's keys and credentials, and every account's files and processes",
		"everything of the user who runs the node, except the site's state and the processes and temporary files of other jobs",
		"the network, and the names of all processes, as any user of the machine; no file of another account or of the site",
		"the network and public files, as any user of the machine; no process or file of another account or of the site",
		"public files of the machine; no network, no process or file of another account or of the site",
	}[Containment(abilities)]
}

// Lingers returns a phrase that says how long a process of a task can run after the task has ended. The phrase depends
// on the abilities of the node. Lingers returns "" if control groups end all processes of a task at once, or if nothing
// separates tasks from the node.
func Lingers(abilities []messages.Name) string {
	until := "the last task on the node"
	switch {
	case slices.Contains(abilities, AbilityFreeze), Containment(abilities) == 0:
		return ""
	case slices.Contains(abilities, AbilityApart) && slices.Contains(abilities, AbilityUser):
		until = "the last task of its account there"
	case slices.Contains(abilities, AbilityApart):
		until = "the last task of its job there"
	}
	return "without control groups, a process that hides from its task can run until " + until + " has ended"
}

// A task has bounds, such as its memory. Unbounded names the bounds that a node with these abilities cannot enforce. It
// returns "" if the node can enforce all bounds.
func Unbounded(abilities []messages.Name) string {
	var missing []string
	for _, bound := range []struct{ ability, what string }{{AbilityMemory, "memory"}, {AbilityPids, "processes"}, {AbilityCPU, "processors"}} {
		if !slices.Contains(abilities, bound.ability) {
			missing = append(missing, bound.what)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "nothing limits how much of these a task uses: " + strings.Join(missing, ", ")
}

// Nests returns a phrase that says what tasks may do in namespaces of their own on a node with these abilities. It
// returns "" if tasks may make no namespaces.
func Nests(abilities []messages.Name) string {
	if !slices.Contains(abilities, AbilityNamespaces) {
		return ""
	}
	return "tasks may make user namespaces, for containers: such tasks reach more of the kernel"
}

// Outdated returns a warning if tasks of a node run under an older build or configuration than the node's agent.
// Otherwise it returns "".
func Outdated(abilities []messages.Name) string {
	if !slices.Contains(abilities, AbilityOutdated) {
		return ""
	}
	return "tasks run under an older build or configuration than the agent's until no task runs there; to end the tasks sooner, use candor node drain"
}

// Paused returns why a node takes no tasks although it is up, or "" if it takes tasks.
func Paused(abilities []messages.Name) string {
	switch {
	case slices.Contains(abilities, AbilityFull):
		return "takes no tasks: its disk is almost full"
	case slices.Contains(abilities, AbilityStalled):
		return "takes no tasks: its executor does not answer; the node's log says what to do"
	case slices.Contains(abilities, AbilityGPUs):
		return "takes no tasks until its tasks have ended: the GPUs that work are not the GPUs that the node sells; the node's log names the GPUs"
	}
	return ""
}
