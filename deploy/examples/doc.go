// Package examples carries the example workloads that the binary has built
// in, so that "candor demo" runs wherever the binary is.
//
// The data under trace-analysis is an excerpt of a public log of a real
// machine. It has terms of its own, which trace-analysis/ATTRIBUTION.md states
// and which come with every copy that [Unpack] writes.
package examples
