// Package session finds and ends the processes of tasks through /proc: the members of a session, the sessions that an
// earlier runner left, and processes that outlive their parents.
//
// The package knows no tasks, only numbers of processes and variables of their environments.
package session
