package messages

// Verbs with which the auctioneer of another site asks this one's on behalf of
// the other site's users. The caller is "$" and that site.
const (
	VerbPeerQuote  = "peer-quote"  // what a job would cost here, and when it would end
	VerbPeerSubmit = "peer-submit" // run a job here, paid by an authorisation of the other site's bank
	VerbPeerJob    = "peer-job"    // one job that came from there
	VerbPeerJobs   = "peer-jobs"   // the jobs that came from there
	VerbPeerCancel = "peer-cancel" // end a job that came from there
	VerbPeerWhy    = "peer-why"    // why a job that came from there waits or ended
	VerbPeerLogs   = "peer-logs"   // the output of a job that came from there
	VerbPeerTasks  = "peer-tasks"  // the tasks of a job that came from there
)

// LeastVisit is the least authorisation for a visiting job, if a site does not configure another
// amount.
const LeastVisit = Credit / 100

// PeerVerb is a request that a site takes from the services of another.
type PeerVerb struct {
	Actor string `json:"actor"`
	Verb  string `json:"verb"`
}

// PeerVerbs lists all requests that may pass between sites, ordered by actor and verb. No other
// request crosses a link, whoever sends it.
func PeerVerbs() []PeerVerb {
	return []PeerVerb{
		{Auctioneer, VerbPeerCancel},
		{Auctioneer, VerbPeerJob},
		{Auctioneer, VerbPeerJobs},
		{Auctioneer, VerbPeerLogs},
		{Auctioneer, VerbPeerQuote},
		{Auctioneer, VerbPeerSubmit},
		{Auctioneer, VerbPeerTasks},
		{Auctioneer, VerbPeerWhy},
		{Bank, VerbInstruct},
		{Bank, VerbLines},
		{Bank, VerbPosition},
		{Bank, VerbTotals},
		{Depot, VerbPeerGet},
		{Depot, VerbPeerOutputs},
		{Depot, VerbPeerTake},
	}
}

// Subject returns the subject on which the services of a site send the request to another site.
func (v PeerVerb) Subject(from, to Name) string {
	return Subject(to, v.Actor, v.Verb, ServiceIdentity(from))
}

// Links is the service that says how a site is linked to its peers. Every host
// has one: it answers for its own server under a verb that is the host's name
// with HostPrefix, to the others, and for all of them to operators.
const Links = "links"

// HostPrefix begins the verbs under which hosts answer for themselves.
const HostPrefix = "host-"

// Link is a connection between a server of this site and a server of a peer.
type Link struct {
	Peer     Name     `json:"peer"`
	Host     Name     `json:"host,omitempty"` // this site's host; empty if the site has no hosts
	Server   string   `json:"server"`         // the peer's, by its own word
	Address  string   `json:"address"`        // the far end of the connection
	Outgoing bool     `json:"outgoing"`       // this site's server connected to the peer's
	RTT      Duration `json:"rtt"`            // between the two servers, as last measured
	In       int64    `json:"in"`             // messages since it was made
	Out      int64    `json:"out"`
}

// PeerTrip is how long a request to a peer's bank took, just now.
type PeerTrip struct {
	Peer    Name     `json:"peer"`
	Took    Duration `json:"took"`    // 0: no answer came
	Failure string   `json:"failure"` // why not
}

// LinksReply says how a site is linked. Missing are hosts that did not answer.
type LinksReply struct {
	Site    Name       `json:"site"`
	Links   []Link     `json:"links"` // by peer, then by host
	Trips   []PeerTrip `json:"trips"` // by peer
	Missing []Name     `json:"missing,omitempty"`
	At      Time       `json:"at"`
}
