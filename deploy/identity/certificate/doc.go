// Package certificate makes the certificates of a site: those of an authority of
// its own, and for each host one that is good for the ports that others than
// the site's hosts connect to, those for clients, for links to peers and for
// metrics, at both ends of a connection; and those of an authority that follows from
// the site's keys ([Internal]), for the ports between its hosts: Raft and NATS routes.
//
// A host's certificate carries the host's name as a DNS name and the names and
// addresses under which others reach the host. Keys are for their owner alone to read.
// The authority's key is only needed to issue: it can be kept away from the hosts. A
// host's certificate can be issued again at any time, and is taken at the next start.
package certificate
