// Package client is Candor's command line: the root command, to which [Main] adds the commands of users and operators
// and the commands of other packages. The commands send the wire types of package messages to a site over a bus, like
// any other client. They contain no rules: the site decides what is allowed and what it costs.
//
// Each group of commands is a package: jobs, submit, accounts, peers, books and site. They use package cli to connect
// and to print. A command sends a request to a site and shows the reply. With --json it prints the reply unchanged.
// Otherwise a function in the group's view.go writes the reply as text. Package jobfile reads descriptions of jobs, and
// package terminal draws tables. The tests of a group are in its package; what they share is in package clienttest.
package client
