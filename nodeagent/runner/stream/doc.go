// Package stream carries the input and output of a process, or of a connection, between the process and the requests of
// a client.
//
// A [Stream] serves one process or connection, and [Streams] are the streams of a node. [Dial] connects to a port at
// which a task listens, and to no other process. The package knows about a task only what [Dialled] tells.
package stream
