// Package slurm answers to the names of Slurm's commands, for programs that call these
// commands: workflow engines, cluster libraries, scripts. "candor slurm link DIR" makes the
// names in a directory; the binary that is called by one of them is this package.
//
// A command reads the options of its namesake, asks the site as any other command of
// package client does, and prints what its namesake prints, so that it can be read by
// programs. What Candor has no counterpart for is refused in one line on standard error,
// with exit code 1, as Slurm does.
//
// In Slurm's words: a partition is a market, an account is the project that pays, a node is
// a node, and a cluster is a site. An element of an array has the job's number, followed by
// the index (33_4), and a number of its own: the job's, plus its position in the array.
package slurm
