// Package chart holds a Helm chart for a site: a stateful set of hosts, each with a NATS server, a replica of
// auctioneer and bank, and an estimator; and a daemon set of node agents. The pods run as root of their container with
// few capabilities, so that tasks run as other users. TLS, the certificate and the network policies can be set as
// values. Tests check that the values, the schema, the copied rules and the arguments of the pods fit together.
package chart
