// Package auctioneer is the actor that decides who runs. Its replicas keep the
// job book (package book) over a mailbox; the leader alone answers users and
// agents, runs each market's mechanism (packages market and mechanism), and
// publishes the allocations.
//
// # Duties
//
// A request changes the book by one command, committed before it is answered.
// What must happen outside because of a commit (a charge at the bank, an
// observation for the estimator) is an effect in the book, repeated until
// it is confirmed. What the leader knows besides the book is soft: markets
// with their allocations, when each node was last heard of, vectors; a new
// leader makes it anew, publishes under its higher term, and gives every node
// a whole lease before it takes a claim back.
package auctioneer
