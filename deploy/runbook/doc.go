// Package runbook holds README.md, which says what an operator does with a running site. The package's tests look at
// every command in README.md, and in the files of deploy that start the program. Each command must exist, with the
// flags that are written there. Other tests carry out the procedures of README.md on running sites: the procedures for
// nodes, for hosts, for keys, and for a peer that does not pay.
package runbook
