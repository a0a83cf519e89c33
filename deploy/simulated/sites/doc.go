// Package sites tests what passes between sites: jobs that one has another run,
// offers, and the credits that pay for them. The banks and auctioneers are the
// real ones, each with a log of its own, on a bus in memory on which a test can do
// what networks do: cut, lose, repeat. Agents are played by the test. It has
// tests only.
package sites
