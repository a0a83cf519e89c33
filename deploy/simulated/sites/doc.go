// Package sites tests what passes between sites: remote jobs, offers, and the credits that pay for them. The banks and
// auctioneers are real, each with its own log, on a bus in memory. On this bus a test can cut connections, and lose or
// repeat messages. The tests do the work of the agents. The package has only tests.
package sites
