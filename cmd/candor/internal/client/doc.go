// Package client is the face of Candor on the command line: the root command
// and the commands of users and operators. They speak to a site in the wire
// types of package messages over a bus, like any other client, and hold no
// rules of their own: what is allowed, and what things cost, the site says.
//
// A command asks, and shows the reply: as text in the views of view_*.go, or
// as it came with --json. Package jobfile reads what is submitted; package
// terminal draws. [Main] adds the commands of other packages to the root and
// maps every error to an exit code, see the help topic exit-codes.
package client
