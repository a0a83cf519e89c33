// Package container holds what runs a site in containers: a Containerfile for the
// one binary, a compose file for a site of three hosts, and that site's
// configuration. Its tests hold the files to one another and to what the program
// accepts.
//
// compose.yaml says how to start the site.
package container
