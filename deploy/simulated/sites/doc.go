// Package sites tests what passes between sites: remote jobs, offers, and the credits that pay for them. The banks and
// auctioneers are real, on a bus in memory on which a test can cut connections, and lose or repeat messages. The tests
// do the work of the agents. The package has only tests.
package sites
