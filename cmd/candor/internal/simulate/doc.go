// Package simulate is the command `candor simulate`. It runs a log in the Standard Workload Format through any
// mechanism in virtual time. Other studies share its type [Source].
package simulate
