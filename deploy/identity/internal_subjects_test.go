package identity

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
)

// internalSubjects are the subjects of NATS, JetStream and the site's own parts. They are in the same account as users,
// so only the permissions separate them.
var internalSubjects = []string{
	"$JS.>", "$JSC.>", "$KV.>", "$O.>", "$NRG.>", "$SYS.>", "$SRV.>", "$G.>", "$MQTT.>", "$GNR.>", "$LDS.>",
	"_INBOX.>", "_R_.>", "_GR_.>", "objects.>", messages.ObservationSubject("west"),
	messages.InboxPrefix("bob") + ".>", messages.InboxPrefix("$auctioneer") + ".>", messages.InboxPrefix("$bank") + ".>",
	messages.LogsReplyPrefix("n2", "bob") + ".>", messages.VectorSubject("west", "*"), messages.DirectiveSubject("west", "n2"),
	messages.Subject("west", "*", "*", "bob"), messages.Subject("west", "*", "*", "$auctioneer"), messages.LogsSubject("west", "*", "bob"),
}

// excepted reports whether a role may use an internal subject that other roles may not use.
func excepted(role Role, publishes bool, subject string) bool {
	switch {
	case role == Operator && publishes:
		return subject == "$SRV.>" // discovery of services
	case role == Node && !publishes: // vectors of all markets, and requests for its logs
		return strings.HasPrefix(subject, "candor.")
	}
	return false
}

// The test checks the patterns of subjects that users, operators, nodes, peers and holders of tokens may use. No
// pattern may match a subject of JetStream, of NATS itself, of streams, or of another inbox. There is one exception: a
// pattern may match such a subject if a denied pattern covers it.
func TestNoClientReachesInternalSubjects(t *testing.T) {
	for role, n := range map[Role]string{User: "alice", Operator: "ops", Node: "n1", Peer: "$east", Joiner: "$join-x", Door: "$door-login1"} {
		p := permissions(role, "west")
		for what, of := range map[string]struct {
			list      jwt.Permission
			publishes bool
		}{"publish": {p.Pub, true}, "subscribe": {p.Sub, false}} {
			if len(of.list.Allow) == 0 {
				t.Errorf("%s: may %s anything", role, what)
			}
			for _, allowed := range of.list.Allow {
				pattern := strings.ReplaceAll(allowed, name, n)
				isDenied := func(subject string) bool {
					return slices.ContainsFunc(of.list.Deny, func(d string) bool { return covers(d, common(pattern, subject)) })
				}
				for _, subject := range internalSubjects {
					if server.SubjectsCollide(pattern, subject) && !excepted(role, of.publishes, subject) && !isDenied(subject) {
						t.Errorf("%s: may %s %s, which reaches %s", role, what, pattern, subject)
					}
				}
			}
		}
	}
}

// common returns a pattern for the subjects that match both of two overlapping patterns. If neither pattern ends in
// ">", each token of the result is the narrower of the two tokens at this place.
func common(a, b string) string {
	of, with := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(of), len(with)) {
		if of[i] == "*" {
			of[i] = with[i]
		}
	}
	return strings.Join(of, ".")
}

// covers reports whether a pattern without ">" matches everything that another pattern matches.
func covers(wide, narrow string) bool {
	w, n := strings.Split(wide, "."), strings.Split(narrow, ".")
	return len(w) == len(n) && slices.EqualFunc(w, n, func(a, b string) bool { return a == "*" || a == b })
}
