// Package proxy lets a task ask its site, in the name of the account of its job: to submit jobs, and to see and steer
// the jobs of the account. A task cannot connect to NATS itself. It has a token in its environment ([Variable]), and sends it
// to the agent of its node. The token tells the agent which attempt asks:
//
//	task --- socket of the node, token ---> agent --- verb "proxy", attempt ---> auctioneer
//
// A token is a keyed hash of the attempt under a key that the agent alone has, so it names one attempt, and no
// state is kept. It opens only the socket, an abstract one: from another machine, or from a task with a network of its
// own (tasks.private), it cannot be reached. The agent refuses an attempt that does not run here now, and so does the
// auctioneer, which also refuses what is not in its list of verbs, and accounts of operators. So a token that was copied
// out of a task is worth nothing once the attempt has ended.
//
// While the agent is away, another process can take the name of the socket. So a client looks at the user of the
// process that answers, which the kernel tells, before it sends the token.
//
// A node could ask in the name of a task that it runs. It can make the task itself do so too.
package proxy
