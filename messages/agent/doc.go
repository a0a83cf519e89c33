// Package agent is the vocabulary between the agent of a node and the leader of the auctioneer: registration,
// [Exchange], [Vector] and [Directive]; and between an agent and the users of a running task: logs, streams, and the
// steps of an allocation.
package agent
