// Package bench measures the whole system from inside one process. It runs a site as `candor up` does, with three
// durable replicas of each actor, in a separate state directory.
package bench
