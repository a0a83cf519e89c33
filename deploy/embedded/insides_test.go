package embedded

import (
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/schema"
)

// insides publishes as a user to every subject on which some part of the site listens, and to JetStream's API. NATS
// must allow only the user's requests in the table of verbs.
func (f fort) insides() {
	open := map[string]bool{}
	for _, n := range f.config.Nodes {
		open[messages.LogsSubject("west", n.Name, "bob")] = true
		open[agentmsg.StreamSubject("west", n.Name, "bob")] = true
	}
	for _, v := range schema.Verbs() {
		if v.Callers == schema.Users && v.Actor != messages.NodeAgent {
			open[messages.Subject("west", v.Actor, v.Verb, "bob")] = true
		}
	}
	heard, err := f.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	subjects := map[string]bool{"$JS.API.CONSUMER.MSG.NEXT.x.y": true, "$JS.ACK.x.y.1.1.1.1.1": true, "$JS.FC.x.y.z": true}
	for _, pattern := range []string{server.JSApiAccountInfo, server.JSApiStreamCreate, server.JSApiStreamUpdate, server.JSApiStreams, server.JSApiStreamList,
		server.JSApiStreamInfo, server.JSApiStreamDelete, server.JSApiStreamPurge, server.JSApiStreamSnapshot, server.JSApiStreamRestore, server.JSApiMsgDelete,
		server.JSApiMsgGet, server.JSDirectMsgGet, server.JSApiConsumerCreate, server.JSApiConsumerCreateEx, server.JSApiDurableCreate, server.JSApiConsumers,
		server.JSApiConsumerList, server.JSApiConsumerInfo, server.JSApiConsumerDelete, server.JSApiStreamRemovePeer,
		server.JSApiStreamLeaderStepDown, server.JSApiConsumerLeaderStepDown, server.JSApiLeaderStepDown, server.JSApiRemoveServer, server.JSApiAccountPurge} {
		subjects[literal(pattern)] = true
	}
	for _, s := range heard.Subs {
		subjects[literal(s.Subject)] = true
	}
	if len(subjects) < len(open) {
		f.Fatalf("only %d subjects were found", len(subjects))
	}
	bob, through := f.raw("bob"), 0
	for subject := range subjects {
		if err := bob.Publish(subject, nil); err != nil {
			f.Fatal(err)
		}
		if err := bob.FlushTimeout(patience); err != nil { // the server's errors arrive before the answer to this flush
			f.Fatal(err)
		}
		refused := false
		if last := bob.LastError(); last != nil {
			refused = strings.Contains(last.Error(), `"`+subject+`"`)
		}
		if !refused {
			through++
		}
		if refused == open[subject] {
			f.Errorf("%s: refused %v", subject, refused)
		}
	}
	if through < len(open)/2 {
		f.Errorf("only %d of the %d verbs of users were tried", through, len(open))
	}
}

// literal returns a subject that matches a pattern. Each wildcard of the pattern is replaced by "bob".
func literal(pattern string) string {
	tokens := strings.Split(pattern, ".")
	for i, t := range tokens {
		if t == "*" || t == ">" {
			tokens[i] = "bob"
		}
	}
	return strings.Join(tokens, ".")
}
