// Package runbook holds README.md, which says what an operator does with a running site. Its tests check that every
// command in it, and in the files of deploy that start the program, exists with those flags. They carry out its
// procedures for nodes, hosts, keys, and a peer that does not pay on sites of the program itself.
package runbook
