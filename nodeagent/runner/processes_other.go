//go:build !linux

package runner

import (
	"context"
	"runtime"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// Processes is a [Runner] of real processes. It is built on Linux's process
// file descriptors, sessions and /proc; elsewhere it cannot be made.
type Processes struct{ Instant }

// NewProcesses refuses.
func NewProcesses(c Config) (*Processes, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return nil, messages.Errorf(messages.Unavailable, "nodes run processes on Linux only, this is %s", runtime.GOOS)
}

// Owner knows no job.
func (*Processes) Owner(job messages.JobID) (messages.Name, error) {
	return "", messages.Errorf(messages.NotFound, "job %v: nothing of it is on this node", job)
}

// ReadLog knows no output.
func (*Processes) ReadLog(_ context.Context, r messages.LogsRequest) (messages.LogsReply, error) {
	return messages.LogsReply{}, messages.Errorf(messages.NotFound, "task %v: has no output on this node", r.Attempt.Task)
}

// Inside refuses.
func Inside([]string) error {
	return messages.Errorf(messages.Unavailable, "nodes run processes on Linux only, this is %s", runtime.GOOS)
}

// Abilities are none.
func (*Processes) Abilities() []messages.Name { return nil }

// Lacks is nothing.
func (*Processes) Lacks() error { return nil }

// Allow refuses.
func Allow(dir string, _ uint32) error {
	return messages.Errorf(messages.Unavailable, "%s: access lists are known on Linux only, this is %s", dir, runtime.GOOS)
}

// UserSelf as a site's choice of user means that tasks run as the site's own.
const UserSelf = "self"

// Contain does nothing: there are no tasks.
func (c *Config) Contain(string, bool) error { return nil }

// NoDumps does nothing.
func NoDumps() error { return nil }

// SubordinateUsers are none.
func SubordinateUsers() (numbers, groups users.Range, err error) {
	return numbers, groups, messages.Errorf(messages.Unavailable, "subordinate users are known on Linux only, this is %s", runtime.GOOS)
}
