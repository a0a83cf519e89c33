// Package examples contains example workloads. They are part of the program, so that "candor demo" works anywhere.
//
// The data under trace-analysis is an excerpt from a public log of a real machine. It has its own
// terms of use, stated in trace-analysis/ATTRIBUTION.md, which every copy that [Unpack] writes
// includes.
package examples
