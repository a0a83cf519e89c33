// Package sites tests what passes between sites: remote jobs, offers, and the credits that pay for
// them. The banks and auctioneers are real, each with its own log, on a bus in memory. On that bus
// a test can do what networks do: cut off, lose, repeat. The tests play the agents. The package has
// only tests.
package sites
