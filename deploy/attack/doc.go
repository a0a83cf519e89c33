// Package attack attacks a site from outside, as its users, its peers and their tasks can. Its tests start the program
// with its defaults, as a child process in a fresh state directory.
//
//	make attack
//
// tries everything and prints a table: each attempt, and either what refused it or its effect. Any effect is a failure.
// A control is a test of the tests: it removes one protection from the site, and then attempts must have effects. Sites
// are tested in these forms: started by root; started by a user without powers; with the rights of a container; on
// three hosts; with limits that tasks try to exceed; with tasks that slow down the node, while the test measures how
// fast other tasks start; with tasks that together fill the disk and the memory, or leave things there after their end;
// and linked to a peer. "make test" leaves some of these out.
//
// The form with the rights of a container has the container's user, capabilities and namespaces, but not a real image
// or a runtime's filter of system calls.
//
// A second part, the fuzzer, mutates valid requests of every verb, with the credentials of a user, an operator, a node
// and a peer site: a few thousand in "make test", a million in "make soak".
//
// The package has only tests: nothing of it is in a binary.
package attack
