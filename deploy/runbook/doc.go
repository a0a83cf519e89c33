// Package runbook holds README.md, which says what an operator does with a running site. Its tests
// check that every command in it, and in the files of deploy that start the program, exists with
// those flags. Its procedures for nodes, hosts (an upgrade under load, a backup and its
// restoration, a lost host), keys, and a peer that does not pay are carried out on sites of the
// program itself.
package runbook
