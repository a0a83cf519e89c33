// Package container holds files to run a site in containers: a Containerfile for the program, a compose file for a site
// of three hosts, and that site's configuration. Tests check that they agree.
//
// compose.yaml says how to start the site.
package container
