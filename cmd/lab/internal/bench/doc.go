// Package bench measures the whole system from inside one process: a site as
// `candor up` runs it, three durable replicas of each actor, on a state
// directory of its own. Each measurement prints its figures as a table or, with
// --json, as one document.
package bench
