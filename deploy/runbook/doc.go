// Package runbook holds what an operator does to a running site, README.md, and
// checks that every command in it, and in the files of deploy that start the
// program, is one that the program has, with those flags. What it says of nodes, of
// hosts (an upgrade under load, a backup and its restoration, a lost host), of keys and
// of a peer that does not pay is carried out, on sites of the program itself.
package runbook
