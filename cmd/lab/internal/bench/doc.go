// Package bench measures the whole system from inside one process: a site as `candor up` runs it,
// with three durable replicas of each actor, in a separate state directory. Each measurement prints
// its figures as a table or, with --json, as one document.
package bench
