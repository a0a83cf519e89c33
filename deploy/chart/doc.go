// Package chart holds a Helm chart for a site: a stateful set of hosts, each with a
// NATS server, a replica of auctioneer and bank and an estimator, and a daemon set
// of node agents. The pods run as root of their container with few capabilities, so that
// tasks run as other users; TLS, the certificate and the network policies are values.
// Its tests hold the chart's values to their schema, the copied rules to those of
// package monitoring, and the arguments to one another.
package chart
