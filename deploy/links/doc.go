// Package links reports how a site is linked to its peers: the connections between the NATS servers, their round trip
// times, and the answer times of the peers' banks.
//
// Every process that runs a NATS server of the site has a [Links], which knows the connections of this server. An
// operator can ask any of these processes about the whole site. The process then asks the other hosts, names the hosts
// that do not answer in time, and sends one small request to each peer's bank.
package links
