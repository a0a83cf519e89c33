package identity

import (
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
)

// roles in the order in which keys are made.
var roles = []Role{User, Operator, Node, Service}

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

// checkName refuses a name that the role cannot have: services speak as "$"
// and an actor, all others under a name a user may choose.
func checkName(role Role, n messages.Name) error {
	if role == Service {
		for _, actor := range []string{messages.Auctioneer, messages.Bank, messages.Estimator, messages.Depot} {
			if n == messages.ServiceIdentity(actor) {
				return nil
			}
		}
		return messages.Errorf(messages.Invalid, "service %q: is none of $auctioneer, $bank, $estimator, $depot", n)
	}
	if !messages.ValidName(n) {
		return messages.Errorf(messages.Invalid, "name %q: must be a lower-case letter followed by at most 62 lower-case letters, digits, '-' or '_'", n)
	}
	return nil
}
