// Package simulate is the command `candor simulate`: it runs a log in the Standard Workload Format
// through any mechanism in virtual time. [Source] is the part that other studies of a log share:
// the trace, the market and the bids.
package simulate
