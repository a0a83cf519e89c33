package identity

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
)

// Role is what a holder of credentials is to the site.
type Role string

// The roles.
const (
	User     Role = "user"     // submits work and pays for it
	Operator Role = "operator" // a user whom the actors let do more, by name
	Node     Role = "node"     // a node's agent
	Service  Role = "service"  // an actor of the site: everything in the account
	Peer     Role = "peer"     // the bank of another site, which settles with this one's
)

// roles whose keys are in files, in the order in which these are made.
var roles = []Role{User, Operator, Node, Service}

// signed are all roles that credentials can have: the key of peers is derived,
// so that sites that had none need no new file.
var signed = append(slices.Clone(roles), Peer)

// name stands for the name in the credentials, where the server fills a template in.
const name = "{{name()}}"

// replyWithin bounds how long an agent may take to answer a request: longer
// than any wait that a reader of logs can ask for.
const replyWithin = time.Minute

// permissions returns the template of a role on a site.
func permissions(role Role, site messages.Name) jwt.Permissions {
	switch role {
	case Node:
		return nodePermissions(site)
	case Peer:
		return peerPermissions(site)
	case Service:
		return jwt.Permissions{Pub: jwt.Permission{Allow: jwt.StringList{">"}}, Sub: jwt.Permission{Allow: jwt.StringList{">"}}}
	default:
		return userPermissions()
	}
}

// userPermissions lets a user ask any actor of any site, and the agent of any
// node for logs, under its own name. Subjects of five tokens on which the
// site's own parts speak are taken out again: the name in them is a node's or
// a market's, which may be the same word as a user's.
func userPermissions() jwt.Permissions {
	deny := jwt.StringList{
		messages.VectorSubject("*", "*"),
		messages.DirectiveSubject("*", "*"),
	}
	for _, verb := range nodeVerbs {
		deny = append(deny, messages.Subject("*", messages.Auctioneer, verb, "*"))
	}
	for _, verb := range fileVerbs {
		deny = append(deny, messages.Subject("*", messages.Depot, verb, "*"))
	}
	return jwt.Permissions{
		Pub: jwt.Permission{
			Allow: jwt.StringList{
				messages.Subject("*", "*", "*", name),
				messages.LogsSubject("*", "*", name),
				"$SRV.>", // discovery of services
			},
			Deny: deny,
		},
		Sub: jwt.Permission{Allow: jwt.StringList{messages.InboxPrefix(name) + ".>"}},
	}
}

// nodeVerbs are the requests that only an agent makes of the auctioneer.
var nodeVerbs = []string{messages.VerbRegister, messages.VerbExchange, messages.VerbVector}

// fileVerbs are the requests that only an agent makes of the depot.
var fileVerbs = []string{messages.VerbTake, messages.VerbGive, messages.VerbDeliver}

// nodePermissions lets an agent speak to its own site's auctioneer and depot, hear
// the vectors and its own directives, and answer requests for its logs; it may
// publish a reply only where it was asked.
func nodePermissions(site messages.Name) jwt.Permissions {
	publish := jwt.StringList{}
	for _, verb := range nodeVerbs {
		publish = append(publish, messages.Subject(site, messages.Auctioneer, verb, name))
	}
	for _, verb := range fileVerbs {
		publish = append(publish, messages.Subject(site, messages.Depot, verb, name))
	}
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: publish},
		Sub: jwt.Permission{Allow: jwt.StringList{
			messages.VectorSubject(site, "*"),
			messages.DirectiveSubject(site, name),
			messages.LogsSubject(site, name, "*"),
			messages.InboxPrefix(name) + ".>",
			"$SRV.>",
		}},
		Resp: &jwt.ResponsePermission{MaxMsgs: 1, Expires: replyWithin},
	}
}

// peerVerbs are the requests that the bank of another site makes of this one's.
var peerVerbs = []string{messages.VerbInstruct, messages.VerbLines, messages.VerbPosition}

// peerPermissions lets another site's bank ask this one's what banks ask one
// another, under the name of that site, and hear the replies.
func peerPermissions(site messages.Name) jwt.Permissions {
	publish := jwt.StringList{}
	for _, verb := range peerVerbs {
		publish = append(publish, messages.Subject(site, messages.Bank, verb, name))
	}
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: publish},
		Sub: jwt.Permission{Allow: jwt.StringList{messages.InboxPrefix(name) + ".>"}},
	}
}

// checkName refuses a name that the role cannot have: services speak as "$"
// and an actor, the banks of peers as "$" and their site, all others under a
// name a user may choose.
func checkName(role Role, n messages.Name) error {
	actor, isService := strings.CutPrefix(n, "$")
	known := isService && slices.Contains([]string{messages.Auctioneer, messages.Bank, messages.Estimator, messages.Depot}, actor)
	switch {
	case role == Service && !known:
		return messages.Errorf(messages.Invalid, "service %q: is none of $auctioneer, $bank, $estimator, $depot", n)
	case role == Peer && (!isService || known || !messages.ValidName(actor)):
		return messages.Errorf(messages.Invalid, "peer %q: must be \"$\" and the name of a site, which is no actor's", n)
	case role != Service && role != Peer && !messages.ValidName(n):
		return messages.Errorf(messages.Invalid, "name %q: must be a lower-case letter followed by at most 62 lower-case letters, digits, '-' or '_'", n)
	case (role == User || role == Operator) && strings.HasPrefix(n, messages.PeerAccountPrefix):
		return messages.Errorf(messages.Invalid, "name %q: names that begin with %q are those of accounts for other sites: choose another", n, messages.PeerAccountPrefix)
	}
	return nil
}
