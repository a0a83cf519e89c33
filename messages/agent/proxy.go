package agent

import "github.com/candor-grid/candor/messages"

// VerbProxy is the verb with which a node sends a request on behalf of a task that it runs: ProxyRequest → ProxyReply.
const VerbProxy = "proxy"

// ProxyRequest is a request of a task. The auctioneer carries it out for the account of the task's job, if the attempt
// runs now on the node that sends it.
type ProxyRequest struct {
	Attempt messages.Attempt `json:"attempt"`
	Verb    string           `json:"verb"`    // verb of the auctioneer
	Request []byte           `json:"request"` // payload of the verb's request
}

// ProxyReply has the auctioneer's reply to the request.
type ProxyReply struct {
	Account messages.Name `json:"account"` // owner of the job
	Reply   []byte        `json:"reply"`
}
