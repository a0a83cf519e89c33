// Package serve has the commands that run Candor's actors: a whole site in one process (up), or single actors. It also
// has the commands that prepare a site, such as config and user.
//
// Only this package reads an operator's settings. A flag wins over its variable (--state over CANDOR_STATE), a variable
// over the configuration file in YAML, and the file over the defaults. An error names its place in the file.
package serve
