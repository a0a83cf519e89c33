package identity

import (
	"slices"
	"strings"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/schema"
)

// Role is the role of a holder of credentials at the site.
type Role string

// These are the roles for which credentials are issued.
const (
	User     Role = "user"     // submits work and pays for it
	Operator Role = "operator" // a user with more rights, which the actors check by name
	Node     Role = "node"     // a node's agent
	Service  Role = "service"  // an actor of the site
	Peer     Role = "peer"     // the bank of another site, which settles debts with this site's bank
	Joiner   Role = "joiner"   // an agent with a join token and without credentials
	Door     Role = "door"     // a machine that gives its users credentials
)

// roles are the roles with keys in files, in the order in which the files are created.
var roles = []Role{User, Operator, Node, Service}

// signed has all roles of credentials: the roles in the variable `roles`, and three other roles. Each of these three
// roles has a key that is derived from another key until it is rotated. So a site that uses none of the three roles
// needs no files with their keys.
var signed = append(slices.Clone(roles), Peer, Joiner, Door)

// name stands for the name in the credentials. The NATS server replaces it in the permissions of a role.
const name = "{{name()}}"

// permissions returns the permissions of a role on a site. They are the same for all clients of this role: in the
// subjects, a placeholder (the constant `name`) stands for the name of the client.
func permissions(role Role, site messages.Name) jwt.Permissions {
	switch role {
	case Node:
		return nodePermissions(site)
	case Peer:
		return askerPermissions(schema.Peers, site)
	case Joiner:
		return askerPermissions(schema.Joiners, site)
	case Door:
		return askerPermissions(schema.Doors, site)
	case Service:
		return servicePermissions(site)
	case Operator:
		p := userPermissions(site)
		p.Pub.Allow.Add("$SRV.>") // discovery of services
		return p
	default:
		return userPermissions(site)
	}
}

// servicePermissions returns the rights of an actor. The actor may read everything, answer requests, publish to agents,
// and use the site's streams. It may send requests in its own name and in its site's name. It may publish to all
// subjects of two or three tokens: replies need this, because no pattern of NATS matches only inboxes. The depot and
// the auctioneer may also send requests in the names of other accounts.
func servicePermissions(site messages.Name) jwt.Permissions {
	publish := jwt.StringList{
		"*.*", "*.*.*",
		messages.Subject("*", "*", "*", name),
		messages.Subject(site, messages.Auctioneer, messages.VerbTasks, "*"),
		messages.Subject(site, messages.Auctioneer, messages.VerbJob, "*"),
		messages.LogsSubject(site, "*", "*"),
		agent.StreamSubject(site, "*", "*"),
		messages.VectorSubject(site, "*"),
		messages.DirectiveSubject(site, "*"),
		messages.ObservationSubject(site),
		messages.ClockSubject(site, "*"),
		"objects.>",
	}
	for _, verb := range clearing.PeerVerbs() {
		publish = append(publish, verb.Subject(site, "*"))
	}
	for _, operation := range []string{"STREAM.CREATE", "STREAM.UPDATE", "STREAM.INFO", "STREAM.MSG.GET",
		"CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE"} {
		publish = append(publish, "$JS.API."+operation+".>")
	}
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: publish, Deny: jwt.StringList{"$JS.API.INFO", "$SYS.>", "$SRV.>"}},
		Sub: jwt.Permission{Allow: jwt.StringList{">"}},
	}
}

// userPermissions lets a user send, in its own name, the requests that the table of verbs allows to users. The user may
// also ask any node's agent for logs and streams, and read the answers.
func userPermissions(site messages.Name) jwt.Permissions {
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: append(asks(schema.Users, site), messages.LogsSubject(site, "*", name), agent.StreamSubject(site, "*", name))},
		Sub: jwt.Permission{Allow: jwt.StringList{messages.InboxPrefix(name) + ".>", messages.LogsReplyPrefix("*", name) + ".>"}},
	}
}

// asks lists the subjects of all requests that some kinds of callers may send to a site's services.
func asks(callers schema.Callers, site messages.Name) (list jwt.StringList) {
	for _, v := range schema.Verbs() {
		if v.Callers == callers && v.Actor != messages.NodeAgent {
			list = append(list, messages.Subject(site, v.Actor, v.Verb, name))
		}
	}
	return list
}

// nodePermissions gives an agent the permissions for its work. The agent may send requests to its site's auctioneer and
// depot. It may read vectors and the directives for its node. It may answer requests for its logs and streams. It may
// not answer on any other reply subject, because a user could name any subject there.
func nodePermissions(site messages.Name) jwt.Permissions {
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: append(asks(schema.Nodes, site), messages.LogsReplyPrefix(name, "*")+".>")},
		Sub: jwt.Permission{Allow: jwt.StringList{
			messages.VectorSubject(site, "*"),
			messages.DirectiveSubject(site, name),
			messages.LogsSubject(site, name, "*"),
			agent.StreamSubject(site, name, "*"),
			messages.InboxPrefix(name) + ".>",
		}},
	}
}

// askerPermissions lets some callers send the requests that the table of verbs allows them, and receive the replies. It
// allows nothing else.
func askerPermissions(callers schema.Callers, site messages.Name) jwt.Permissions {
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: asks(callers, site)},
		Sub: jwt.Permission{Allow: jwt.StringList{messages.InboxPrefix(name) + ".>"}},
	}
}

// limits returns the limits of a connection of a role. It bounds connections of users, operators, holders of tokens and
// doors, because a subscription takes memory on every server.
func limits(role Role) jwt.NatsLimits {
	switch role {
	case User, Operator:
		return jwt.NatsLimits{Subs: userSubs, Data: jwt.NoLimit, Payload: userPayload}
	case Joiner, Door:
		return jwt.NatsLimits{Subs: joinerSubs, Data: jwt.NoLimit, Payload: joinerPayload}
	}
	return jwt.NatsLimits{Subs: jwt.NoLimit, Data: jwt.NoLimit, Payload: jwt.NoLimit}
}

// These are the limits of a connection of a user or of a holder of a token. One subscription receives all replies, so a
// command needs three subscriptions. A command of v0.9.0 needs one more for each waiting request to a node. More
// subscriptions would harm other users: a server delivers a reply to all subscriptions of the account that match it,
// and delivers no other reply of the same service meanwhile. The largest request of a user is a piece of a file, or a
// job of many stages. Payloads are in bytes. Holders of tokens, and doors (services on login nodes), send only small
// requests.
const (
	userSubs      = 8
	userPayload   = 2 << 20
	joinerSubs    = 4
	joinerPayload = 4 << 10
)

// checkName returns an error for a name that the role cannot have. Names that begin with "$" are for services
// ("$bank"), for the banks of peers ("$west"), for holders of tokens, and for doors ("$door-login1"). Other roles have
// names that users may choose, such as "alice".
func checkName(role Role, n messages.Name) error {
	actor, isService := strings.CutPrefix(n, "$")
	known := isService && slices.Contains([]string{messages.Auctioneer, messages.Bank, messages.Estimator, messages.Depot, messages.Admission, messages.Links}, actor)
	joins := isService && strings.HasPrefix(actor, messages.JoinPrefix) && messages.ValidName(actor)
	lends := isService && strings.HasPrefix(actor, messages.DoorPrefix) && messages.ValidName(actor)
	switch {
	case role == Service && !known:
		return messages.Errorf(messages.Invalid, "service %q: is not one of $auctioneer, $bank, $estimator, $depot, $admission", n)
	case role == Joiner && !joins:
		return messages.Errorf(messages.Invalid, "joiner %q: must be \"$\" and the identifier of a join token", n)
	case role == Door && !lends:
		return messages.Errorf(messages.Invalid, "door %q: must be \"$%s\" and a name, like $%slogin1", n, messages.DoorPrefix, messages.DoorPrefix)
	case role == Peer && (!isService || known || joins || lends || !messages.ValidName(actor)):
		return messages.Errorf(messages.Invalid, "peer %q: must be \"$\" and the name of a site, which must not be the name of an actor", n)
	case role != Service && role != Peer && role != Joiner && role != Door && !messages.ValidName(n):
		return messages.Errorf(messages.Invalid, "name %q: must be a lower-case letter followed by at most 62 lower-case letters, digits, '-' or '_'", n)
	case (role == User || role == Operator) && strings.HasPrefix(n, clearing.PeerAccountPrefix):
		return messages.Errorf(messages.Invalid, "name %q: names that begin with %q are for accounts of other sites: choose another", n, clearing.PeerAccountPrefix)
	}
	return nil
}
