// Package attack attacks a site as its users, its peers and their tasks can: from
// outside. Its tests start the operators' own binary with its defaults, as a child
// process in a fresh state directory, and so try what lies between the parts too.
//
//	make attack
//
// tries everything and prints a table of attempts, with what refused each or what it
// effected; any effect fails. The control is a site of which one door is open, on
// which the same attempts must have effects.
//
// A second part, the fuzzer, mutates valid requests of every verb, with the
// credentials of a user, an operator, a node and a peer site: a few thousand in
// "make test", a million in "make soak".
//
// The package has tests alone: nothing of it is in a binary.
package attack
