// Package contracts reproduces what Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong
// and M. Chiang, "Discovering valuations and enforcing truthfulness in a
// deadline-aware scheduler", report: how far an estimate of users' types is from
// the truth after so many samples, figure 7.
package contracts
