// Package serve has the commands that run Candor's actors: a whole site in one process (up), or single actors. It
// also has commands that prepare a site, such as config and user.
//
// Only this package reads an operator's settings: a configuration file in YAML, the environment and the command line.
// A flag wins over its variable: --state over CANDOR_STATE, for example. A variable wins over the file, and the file
// over the defaults. An error names its place in the file.
package serve
