// Package chart holds a Helm chart for a site: a stateful set of hosts, each with a
// NATS server, a replica of auctioneer and bank and an estimator, and a daemon set
// of node agents. Its tests hold the chart's values to their schema, the copied
// rules to those of package monitoring, and the arguments to one another.
package chart
