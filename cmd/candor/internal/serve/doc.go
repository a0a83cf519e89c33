// Package serve holds the commands that run Candor's actors: a whole site in
// one process (up), one actor alone, and what belongs to them (config, user).
//
// It alone reads what an operator says: a configuration file in YAML, the
// environment and the command line. A flag wins over its variable, CANDOR_ and
// the flag's name in capitals, that over the file, and the file over the
// defaults. What is wrong is told with its place in the file.
package serve
