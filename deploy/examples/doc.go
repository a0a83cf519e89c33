// Package examples contains example workloads. They are part of the program, so that "candor demo" works anywhere.
//
// The data under trace-analysis is an excerpt from a public log. Every copy that [Unpack] writes includes its terms of
// use, trace-analysis/ATTRIBUTION.md.
package examples
