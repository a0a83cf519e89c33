// Package room makes rooms. A room is a set of namespaces that the tasks of one account share or, where accounts share
// a user, the tasks of one job. In a room, tasks see only their own processes, shared memory and temporary directories.
// Of the hidden directories they see only the parts that are shown to them.
//
// A separate process, the holder, runs [Inside] and keeps a room open. When the holder ends, every process in the room
// ends.
//
// The package starts no tasks: a thread of package launch enters a room before it starts one.
package room
