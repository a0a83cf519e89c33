// Package client is the face of Candor on the command line: the root command, to which
// [Main] adds the commands of users and operators and those of other packages. The
// commands speak to a site in the wire types of package messages over a bus, like any
// other client, and hold no rules of their own: the site says what is allowed, and what
// it costs.
//
// A group of commands is a package: jobs, submit, accounts, peers, books and site. All
// share package cli, which connects and prints. A command asks a site and shows the
// reply: as text, by a function named after the reply in the group's view.go, or with
// --json as it came. Package jobfile reads descriptions of jobs, package terminal draws.
package client
