// Package simulate is the command `candor simulate`: a log in the Standard
// Workload Format, run through any mechanism in virtual time. [Source] is what
// other studies of a log share with it: the trace, the market and the bids.
package simulate
