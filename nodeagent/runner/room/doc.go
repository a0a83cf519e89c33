// Package room makes rooms: sets of namespaces that the tasks of one account share, or the tasks of one job where
// accounts share a user. In a room, tasks see only their own processes, shared memory and temporary directories, and
// of the hidden directories only what is shown to them.
//
// A process of its own, the holder, runs [Inside] and keeps a room open. When it ends, every process inside ends.
//
// The package starts no tasks and reads no files of jobs: a thread of package launch enters a room before it starts one.
package room
