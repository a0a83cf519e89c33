// Package serve holds the commands that run Candor's actors: a whole site in one process (up),
// single actors, and commands that belong to these (config, user).
//
// Only this package reads an operator's settings: a configuration file in YAML, the environment and
// the command line. A flag wins over its variable (CANDOR_ and the flag's name in capitals), a
// variable over the file, and the file over the defaults. An error names its place in the file.
package serve
