// Package certificate makes the certificates of a site: those of an authority of
// its own, and for each host one that is good for every port of the site, for
// clients, NATS servers, links to peers, gateways and Raft, at both ends of a
// connection.
//
// A host's certificate carries the host's name as a DNS name, by which replicas know
// one another, and the names and addresses under which others reach the host. Keys
// are for their owner alone to read. The authority's key is only needed to issue: it
// can be kept away from the hosts. A host's certificate can be issued again at any
// time, and is taken at the next start.
package certificate
