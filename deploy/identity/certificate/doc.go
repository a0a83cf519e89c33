// Package certificate makes the certificates of a site, from two authorities. The site's own
// authority signs one for each host, for the ports to which others than the site's hosts
// connect: those for clients, for links to peers and for metrics. An authority derived from the
// site's keys ([Internal]) signs those for the ports between its hosts: Raft and NATS routes.
//
// A host's certificate has the host's name as a DNS name, and the names and addresses under
// which others reach it. Only their owner can read the keys. The authority's key is needed only
// to issue, so it can be kept away from the hosts. A host's certificate can be issued again at
// any time, and is used from the next start on.
package certificate
