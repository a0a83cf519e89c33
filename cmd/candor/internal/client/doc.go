// Package client is Candor's command line: the root command, to which [Main] adds the commands. They send the wire
// types of package messages to a site. The site decides what is allowed and what it costs.
//
// Each group of commands is a package: jobs, submit, accounts, peers, books and site. Package cli connects and prints,
// package jobfile reads descriptions of jobs, and package terminal draws tables. With --json a command prints the
// site's reply unchanged.
package client
