package schema

import (
	"reflect"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Message is a type that travels in JSON.
type Message struct {
	Name string `json:"name"`
	// Subject is where a request goes, with <site>, <account> and <node> to be
	// filled in; "" for a type that is no request.
	Subject string `json:"subject,omitempty"`
	// Reply names the type of the answer to a request.
	Reply string `json:"reply,omitempty"`

	of reflect.Type
}

// Catalogue lists the requests of users and operators, in the order of their
// actors and verbs, then the replies, then the other types that users meet.
func Catalogue() []Message {
	m := []Message{
		request[messages.SubmitRequest, messages.SubmitReply](messages.Auctioneer, messages.VerbSubmit),
		request[messages.JobRequest, messages.CancelReply](messages.Auctioneer, messages.VerbCancel),
		request[messages.JobsRequest, messages.JobsReply](messages.Auctioneer, messages.VerbJobs),
		request[messages.JobRequest, messages.JobDetail](messages.Auctioneer, messages.VerbJob),
		request[messages.TasksRequest, messages.TasksReply](messages.Auctioneer, messages.VerbTasks),
		request[messages.JobRequest, messages.WhyReply](messages.Auctioneer, messages.VerbWhy),
		request[messages.Empty, messages.NodesReply](messages.Auctioneer, messages.VerbNodes),
		request[messages.Empty, messages.MarketsReply](messages.Auctioneer, messages.VerbMarkets),
		request[messages.Empty, messages.StatusReply](messages.Auctioneer, messages.VerbStatus),
		request[messages.AccountRequest, messages.AccountReply](messages.Bank, messages.VerbAccount),
		request[messages.Empty, messages.AccountsReply](messages.Bank, messages.VerbAccounts),
		request[messages.StatementRequest, messages.StatementReply](messages.Bank, messages.VerbStatement),
		request[messages.Empty, messages.BooksReply](messages.Bank, messages.VerbBooks),
		request[messages.GrantRequest, messages.AccountReply](messages.Bank, messages.VerbGrant),
		request[messages.MemberRequest, messages.AccountReply](messages.Bank, messages.VerbMember),
		request[messages.TransferRequest, messages.TransferReply](messages.Bank, messages.VerbTransfer),
		request[messages.UtilityRequest, messages.UtilityReply](messages.Estimator, messages.VerbUtility),
	}
	logs := request[messages.LogsRequest, messages.LogsReply](messages.NodeAgent, messages.VerbLogs)
	logs.Subject = messages.LogsSubject("<site>", "<node>", "<account>")
	return append(append(m, logs), others()...)
}

// request describes a verb by the types of its request and reply.
func request[Req, Rep any](actor, verb string) Message {
	m := plain[Req]()
	m.Subject = messages.Subject("<site>", actor, verb, "<account>")
	m.Reply = reflect.TypeFor[Rep]().Name()
	return m
}

func others() []Message {
	return []Message{
		plain[messages.SubmitReply](), plain[messages.CancelReply](), plain[messages.JobsReply](), plain[messages.JobDetail](),
		plain[messages.TasksReply](), plain[messages.WhyReply](), plain[messages.NodesReply](), plain[messages.MarketsReply](),
		plain[messages.StatusReply](), plain[messages.AccountReply](), plain[messages.AccountsReply](), plain[messages.StatementReply](),
		plain[messages.BooksReply](), plain[messages.TransferReply](), plain[messages.UtilityReply](), plain[messages.LogsReply](),
		plain[messages.JobSpec](), plain[messages.Market](), plain[messages.Observation](), plain[messages.Error](),
	}
}

func plain[T any]() Message {
	t := reflect.TypeFor[T]()
	return Message{Name: t.Name(), of: t}
}

// Find returns the message of a name, in any case of letters.
func Find(name string) (Message, bool) {
	for _, m := range Catalogue() {
		if strings.EqualFold(m.Name, name) {
			return m, true
		}
	}
	return Message{}, false
}
