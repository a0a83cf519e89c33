package messages

// VerbProxy is a node's request on behalf of a task that it runs: ProxyRequest → ProxyReply.
const VerbProxy = "proxy"

// ProxyRequest is a request of a task, which the auctioneer carries out as one of the account of the task's job,
// while the attempt runs on the node that asks.
type ProxyRequest struct {
	Attempt Attempt `json:"attempt"`
	Verb    string  `json:"verb"`    // verb of the auctioneer
	Request []byte  `json:"request"` // payload for the verb
}

// ProxyReply is the reply of the verb.
type ProxyReply struct {
	Account Name   `json:"account"` // owner of the job
	Reply   []byte `json:"reply"`
}
