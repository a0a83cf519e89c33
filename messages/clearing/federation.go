package clearing

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are verbs of the auctioneer for requests from another site. That site sends them for its own users. The caller
// is "$" and the name of that site.
const (
	VerbPeerQuote  = "peer-quote"  // what a job would cost here, and when it would end
	VerbPeerSubmit = "peer-submit" // run a job here, paid by an authorisation of the other site's bank
	VerbPeerJob    = "peer-job"    // one job of that site's users
	VerbPeerJobs   = "peer-jobs"   // all jobs of that site's users
	VerbPeerCancel = "peer-cancel" // end a job of that site's users
	VerbPeerWhy    = "peer-why"    // why a job of that site's users waits or ended
	VerbPeerLogs   = "peer-logs"   // the output of a job of that site's users
	VerbPeerTasks  = "peer-tasks"  // the tasks of a job of that site's users
)

// LeastVisit is the smallest authorisation for a visiting job, unless a site configures another amount.
const LeastVisit = messages.Credit / 100

// PeerVerb is a request that a site accepts from the services of another site.
type PeerVerb struct {
	Actor string `json:"actor"`
	Verb  string `json:"verb"`
}

// PeerVerbs lists all requests that may pass between sites, ordered by actor and verb. No other request passes a link.
func PeerVerbs() []PeerVerb {
	return []PeerVerb{
		{messages.Auctioneer, VerbPeerCancel},
		{messages.Auctioneer, VerbPeerJob},
		{messages.Auctioneer, VerbPeerJobs},
		{messages.Auctioneer, VerbPeerLogs},
		{messages.Auctioneer, VerbPeerQuote},
		{messages.Auctioneer, VerbPeerSubmit},
		{messages.Auctioneer, VerbPeerTasks},
		{messages.Auctioneer, VerbPeerWhy},
		{messages.Bank, VerbInstruct},
		{messages.Bank, VerbLines},
		{messages.Bank, VerbPosition},
		{messages.Bank, VerbTotals},
		{messages.Depot, job.VerbPeerGet},
		{messages.Depot, job.VerbPeerOutputs},
		{messages.Depot, job.VerbPeerTake},
	}
}

// Subject returns the subject of the request from the services of one site to another site.
func (v PeerVerb) Subject(from, to messages.Name) string {
	return messages.Subject(to, v.Actor, v.Verb, messages.ServiceIdentity(from))
}

// Link is a connection between a server of this site and a server of a peer.
type Link struct {
	Peer     messages.Name     `json:"peer"`
	Host     messages.Name     `json:"host,omitempty"` // this site's host; empty if the site has no hosts
	Server   string            `json:"server"`         // name of the peer's server, as the peer says
	Address  string            `json:"address"`        // the far end of the connection
	Outgoing bool              `json:"outgoing"`       // this site's server opened the connection
	RTT      messages.Duration `json:"rtt"`            // round trip between the two servers, as last measured
	In       int64             `json:"in"`             // messages since the connection was made
	Out      int64             `json:"out"`
}

// PeerTrip has the result of one request to a peer's bank: how long the answer took.
type PeerTrip struct {
	Peer    messages.Name     `json:"peer"`
	Took    messages.Duration `json:"took"`    // 0 means that no answer came
	Failure string            `json:"failure"` // why no answer came
}

// LinksReply reports the links of a site. The list Missing names the hosts that did not answer.
type LinksReply struct {
	Site    messages.Name   `json:"site"`
	Links   []Link          `json:"links"` // by peer, then by host
	Trips   []PeerTrip      `json:"trips"` // by peer
	Missing []messages.Name `json:"missing,omitempty"`
	At      messages.Time   `json:"at"`
}
