// Package certificate makes the certificates of a site, from two authorities. The first one is the site's own
// authority, which signs a certificate for each host. The host uses this certificate at the ports to which clients,
// peers and readers of metrics connect. The second authority is derived from the site's keys ([Internal]). It signs
// certificates for the ports between the site's hosts: Raft and NATS routes.
//
// A host's certificate has the host's name as a DNS name, and the names and addresses under which others reach it.
// Private keys are in files that only the owner of the files can read. The authority's key is needed only to issue
// certificates, so it can be kept away from the hosts.
package certificate
