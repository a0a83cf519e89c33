// Package room makes rooms. A room is a set of namespaces. Usually all tasks of an account share a room. If several
// accounts have the same user, only the tasks of one job share a room. In a room, tasks see only their own processes,
// shared memory and temporary directories. Some directories of the machine are hidden from tasks. A task sees only the
// parts of a hidden directory that the room shows.
//
// A separate process, the holder, runs [Inside] and keeps a room open. When the holder ends, every process in the room
// ends.
//
// The package starts no tasks: a thread of package launch enters a room before it starts one.
package room
