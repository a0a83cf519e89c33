// Package certificate makes the certificates of a site, from two authorities. The site's own authority signs a
// certificate for each host. It is for the ports to which clients, peers and readers of metrics connect. A second
// authority is derived from the site's keys ([Internal]). It signs certificates for the ports between the site's hosts:
// Raft and NATS routes.
//
// A host's certificate has the host's name as a DNS name, and the names and addresses under which others reach it. Only
// their owner can read the keys. The authority's key is needed only to issue, so it can be kept away from the hosts.
package certificate
