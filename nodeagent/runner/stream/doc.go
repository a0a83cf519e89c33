// Package stream carries the input and output of a process, or of a connection, between the process and the requests of
// a client.
//
// A [Stream] is one of them, and [Streams] are the streams of a node. [Dial] connects to a port at which a task listens,
// and to no other process. Of a task it can only do what [Dialled] says; it starts and ends none.
package stream
