// Package proxy lets a task send requests to its site in the name of its job's account: to submit jobs, and to see and
// control the jobs of the account. A task cannot connect to NATS itself. It has a token in its environment
// ([Variable]), and sends the token to the agent of its node. The token tells the agent which attempt asks:
//
//	task --- socket of the node, token ---> agent --- verb "proxy", attempt ---> auctioneer
//
// A token is a keyed hash of the attempt. Only the agent and its executor have the key, so a token names one attempt,
// and the agent need not store tokens. The socket is an abstract one: it cannot be reached from another machine, or
// from a task with a network of its own (tasks.private). The agent refuses attempts that do not run here now. The
// auctioneer refuses them too. It also refuses verbs that are not in its list, and accounts of operators. So a token
// that was copied out of a task is useless after the attempt has ended.
//
// While the agent is away, another process can take the name of the socket. So before a client sends the token, it asks
// the kernel for the user of the process that answers. An agent that finds its name taken logs who took it, and
// tries again until it has the name.
//
// Every process of the machine can connect to the socket, also without a token. So users share its places: see [Places].
//
// A node could send requests in the name of a task that it runs. This gives it no new power: it runs the task, so it
// could make the task send them.
package proxy
