// Package runbook holds what an operator does to a running site, README.md, and
// checks that every command in it, and in the files of deploy that start the
// program, is one that the program has, with those flags. What it says of nodes and
// books is carried out on a site.
package runbook
