// Package attack attacks a site as its users, its peers and their tasks can: from
// outside. Its tests start the operators' own binary with its defaults, as a child
// process in a fresh state directory, and so try what lies between the parts too.
//
//	make attack
//
// tries everything and prints a table of attempts, with what refused each or what it
// effected; any effect fails. The control is a site of which one door is open, on
// which the same attempts must have effects. The forms of the site are: started by root,
// by a user without powers, with what a container has, on three hosts, with limits that
// tasks try to pass, with tasks that hold up what the node does for them while others' starts are
// measured, with tasks that together fill the disk and the memory, or leave there what outlives them, and linked to a peer. "make test" leaves some of these out.
//
// Without a container's runtime the image, and the runtime's filter of system calls, are
// not tried: that form has the container's user, capabilities and namespaces.
//
// A second part, the fuzzer, mutates valid requests of every verb, with the
// credentials of a user, an operator, a node and a peer site: a few thousand in
// "make test", a million in "make soak".
//
// The package has tests alone: nothing of it is in a binary.
package attack
