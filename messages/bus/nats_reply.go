package bus

import (
	"strings"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// importedReply is the prefix of a NATS server's reply subjects for requests from another NATS account. The server
// refuses messages of clients that name such a reply subject.
const importedReply = "_R_."

// listensAt reports whether the caller of a request listens at the reply subject that the request names. The check is
// needed because NATS lets a client name any reply subject, and a service may publish where the caller may not. The
// reply subject must be the request's reply prefix and one or two more tokens. There is one exception: if the request
// came from another NATS account, the server has replaced the reply subject by a subject of its own. Such a subject is
// accepted too.
func listensAt(subject, reply string) bool {
	below, own := strings.CutPrefix(reply, messages.ReplyPrefix(subject)+".")
	return own && strings.Count(below, ".") <= 1 || strings.HasPrefix(reply, importedReply)
}

// isInbox reports whether a reply subject is in a user's inbox.
func isInbox(reply string) bool {
	first, _, below := strings.Cut(reply, ".")
	name, is := strings.CutPrefix(first, messages.InboxPrefix(""))
	return below && is && messages.ValidName(name)
}

// refuseReply counts a request that is refused because of its reply subject. It logs at most one each second.
func (b *natsBus) refuseReply(m *nats.Msg) {
	b.metrics.misdirected.Inc()
	b.sampled.Warn("refused a request, because its reply subject is outside the inbox of its caller", zap.String("subject", clip(m.Subject)), zap.String("reply", clip(m.Reply)))
}
