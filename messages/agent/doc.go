// Package agent is the vocabulary between a node's agent and the auctioneer's leader ([Exchange], [Vector],
// [Directive]), and between an agent and the users of a running task (logs, streams, and the steps of an allocation).
package agent
