package messages

import "strings"

// Actors, as they stand in subjects.
const (
	Auctioneer = "auctioneer"
	NodeAgent  = "nodeagent"
	Bank       = "bank"
	Estimator  = "estimator"
)

// Verbs of the auctioneer. Submit, cancel, register and exchange are commands
// of the leader; the others are queries.
const (
	VerbSubmit   = "submit"   // SubmitRequest → SubmitReply
	VerbCancel   = "cancel"   // JobRequest → CancelReply
	VerbRegister = "register" // RegisterRequest → RegisterReply; the account is the node
	VerbExchange = "exchange" // Exchange → ExchangeReply; the account is the node
	VerbVector   = "vector"   // VectorRequest → Vector; the account is the node
	VerbKept     = "kept"     // JobRequest → KeptReply; the account is the node
	VerbStep     = "step"     // StepRequest → StepReply; the account is the node
	VerbArchive  = "archive"  // ArchiveRequest → ArchiveReply; replicas of the auctioneer
	VerbJobs     = "jobs"     // JobsRequest → JobsReply
	VerbJob      = "job"      // JobRequest → JobDetail
	VerbTasks    = "tasks"    // TasksRequest → TasksReply
	VerbWhy      = "why"      // JobRequest → WhyReply
	VerbNodes    = "nodes"    // Empty → NodesReply
	VerbMarkets  = "markets"  // Empty → MarketsReply
	VerbStatus   = "status"   // Empty → StatusReply; of the bank too
)

// Verbs of the bank. Transfer, grant and member are commands of the leader.
const (
	VerbTransfer  = "transfer"  // TransferRequest → TransferReply; services and operators
	VerbGrant     = "grant"     // GrantRequest → AccountReply; operators
	VerbMember    = "member"    // MemberRequest → AccountReply; operators, owners of a project
	VerbAccount   = "account"   // AccountRequest → AccountReply
	VerbAccounts  = "accounts"  // AccountsRequest → AccountsReply; operators see all, others theirs
	VerbStatement = "statement" // StatementRequest → StatementReply
	VerbBooks     = "books"     // BooksRequest → BooksReply
)

// Verbs of the estimator and of the node agents.
const (
	VerbUtility = "utility" // UtilityRequest → UtilityReply
	VerbLogs    = "logs"    // LogsRequest → LogsReply
)

// Subject is where a request of an account to an actor goes:
// candor.<site>.<actor>.<verb>.<account>. With "*" as the account it is what
// the actor listens to.
func Subject(site Name, actor, verb string, account Name) string {
	return strings.Join([]string{"candor", site, actor, verb, account}, ".")
}

// Caller returns the account of a request's subject, its last token.
func Caller(subject string) Name { return subject[strings.LastIndexByte(subject, '.')+1:] }

// VectorSubject is where the leader publishes a market's vectors.
func VectorSubject(site, market Name) string {
	return strings.Join([]string{"candor", site, Auctioneer, "vectors", token(market)}, ".")
}

// DirectiveSubject is where the leader publishes a node's directives.
func DirectiveSubject(site, node Name) string {
	return strings.Join([]string{"candor", site, NodeAgent, "directives", node}, ".")
}

// LogsSubject is where a node's agent is asked for the output of its tasks;
// node "*" is not used: every agent listens to its own name only.
func LogsSubject(site, node, account Name) string {
	return strings.Join([]string{"candor", site, NodeAgent, VerbLogs, node, account}, ".")
}

// ClockSubject is where a host of the site tells the others what its clock shows.
func ClockSubject(site, host Name) string {
	return strings.Join([]string{"candor", site, "clock", host}, ".")
}

// ClockReading is what the wall clock of a host showed when it was sent.
type ClockReading struct {
	At Time `json:"at"`
}

// ObservationSubject is where the auctioneer leaves observations, in the
// stream that ObservationStream names.
func ObservationSubject(site Name) string {
	return strings.Join([]string{"candor", site, Estimator, "observations"}, ".")
}

// ObservationStream names the stream of observations of a site.
func ObservationStream(site Name) string { return "OBSERVATIONS_" + strings.ToUpper(site) }

// ServiceIdentity is the account under which an actor of the site speaks to
// another actor: "$" and the actor. No user can have such a name.
func ServiceIdentity(actor string) Name { return "$" + actor }

// InboxPrefix is where the replies to the requests of a connection arrive:
// below a token with its own name, which its credentials alone may subscribe
// to. Nobody but a service may subscribe more widely. Services reply nowhere else.
func InboxPrefix(name Name) string { return "_INBOX_" + name }

// RefusalSubject is where the site tells the connections of a name which of them it is
// about to cut, and why.
func RefusalSubject(name Name) string { return InboxPrefix(name) + ".refused" }

// LogsReplyPrefix is where a node's replies to an account's requests for logs and streams arrive:
// the node may publish below its own name alone, and the account listen below its own.
func LogsReplyPrefix(node, account Name) string {
	return strings.Join([]string{"_LOGS", node, account}, ".")
}

// ReplyPrefix is where the reply to a request on a subject arrives.
func ReplyPrefix(subject string) string {
	if strings.Count(subject, ".") == logsTokens-1 {
		if tokens := strings.Split(subject, "."); tokens[2] == NodeAgent && (tokens[3] == VerbLogs || tokens[3] == VerbStream) {
			return LogsReplyPrefix(tokens[4], tokens[5])
		}
	}
	return InboxPrefix(Caller(subject))
}

// logsTokens is how many tokens a [LogsSubject] and a [StreamSubject] have.
const logsTokens = 6
