package messages

import "strings"

// Links is the service that reports how a site is connected to its peers. Every host runs one. An operator who asks one
// host gets the reports of all hosts: the hosts ask each other with the verb HostPrefix and the name of the asked host.
const Links = "links"

// HostPrefix is the prefix of the verbs with which hosts ask each other.
const HostPrefix = "host-"

// Depot is the service that keeps the files of jobs. Users and agents have no access to JetStream itself, because its
// API could send a stored message to any subject, in the name of others.
const Depot = "depot"

// VerbStream is the verb of a node's agent for streams: StreamRequest → StreamReply.
const VerbStream = "stream"

// These are the names of the actors in subjects.
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
	VerbStatus   = "status"   // Empty → StatusReply; the bank has this verb too
)

// These are verbs of the bank. The verbs transfer, grant and member are commands of the leader.
const (
	VerbTransfer  = "transfer"  // TransferRequest → TransferReply; services and operators
	VerbGrant     = "grant"     // GrantRequest → AccountReply; operators
	VerbMember    = "member"    // MemberRequest → AccountReply; operators, owners of a project
	VerbAccount   = "account"   // AccountRequest → AccountReply
	VerbAccounts  = "accounts"  // AccountsRequest → AccountsReply; operators see all accounts, others their own
	VerbStatement = "statement" // StatementRequest → StatementReply
	VerbBooks     = "books"     // BooksRequest → BooksReply
)

// These are the verbs of the estimator and of the node agents.
const (
	VerbUtility = "utility" // UtilityRequest → UtilityReply
	VerbLogs    = "logs"    // LogsRequest → LogsReply
)

// Subject returns the subject of an account's request to an actor: candor.<site>.<actor>.<verb>.<account>. The actor
// subscribes to it with "*" as the account.
func Subject(site Name, actor, verb string, account Name) string {
	return strings.Join([]string{"candor", site, actor, verb, account}, ".")
}

// Caller returns the account in a request's subject, its last token.
func Caller(subject string) Name { return subject[strings.LastIndexByte(subject, '.')+1:] }

// VectorSubject returns the subject on which the leader publishes a market's vectors (the weights of its jobs).
func VectorSubject(site, market Name) string {
	return strings.Join([]string{"candor", site, Auctioneer, "vectors", token(market)}, ".")
}

// DirectiveSubject returns the subject on which the leader publishes a node's directives.
func DirectiveSubject(site, node Name) string {
	return strings.Join([]string{"candor", site, NodeAgent, "directives", node}, ".")
}

// LogsSubject returns the subject of an account's requests to a node's agent for the output of its tasks. The node is
// never "*": every agent subscribes only to its own name.
func LogsSubject(site, node, account Name) string {
	return strings.Join([]string{"candor", site, NodeAgent, VerbLogs, node, account}, ".")
}

// ClockSubject returns the subject on which a host of the site publishes the time of its clock.
func ClockSubject(site, host Name) string {
	return strings.Join([]string{"candor", site, "clock", host}, ".")
}

// ClockReading is the time of a host's wall clock at the moment of sending.
type ClockReading struct {
	At Time `json:"at"`
}

// ObservationSubject returns the subject to which the auctioneer sends observations. It belongs to the stream of
// ObservationStream.
func ObservationSubject(site Name) string {
	return strings.Join([]string{"candor", site, Estimator, "observations"}, ".")
}

// ObservationStream returns the name of a site's stream of observations.
func ObservationStream(site Name) string { return "OBSERVATIONS_" + strings.ToUpper(site) }

// ServiceIdentity returns the account with which an actor of the site sends requests to other actors: "$" and the
// actor's name. No user can have such a name.
func ServiceIdentity(actor string) Name { return "$" + actor }

// InboxPrefix returns the first part of the subjects on which a connection receives replies. It ends with the name of
// the connection. Two kinds of clients may subscribe to these subjects: those with the credentials of this name, and
// services. Services send replies only to subjects of this form.
func InboxPrefix(name Name) string { return "_INBOX_" + name }

// RefusalSubject returns the subject on which the site says which connections of a name it will close, and why.
func RefusalSubject(name Name) string { return InboxPrefix(name) + ".refused" }

// LogsReplyPrefix returns the prefix of the subjects for a node's replies to an account's requests for logs and
// streams. Below this prefix, the node may publish and the account may subscribe. Other nodes and accounts may not.
func LogsReplyPrefix(node, account Name) string {
	return strings.Join([]string{"_LOGS", node, account}, ".")
}

// ReplyPrefix returns the prefix of the subjects for replies to a request.
func ReplyPrefix(subject string) string {
	if strings.Count(subject, ".") == logsTokens-1 {
		if tokens := strings.Split(subject, "."); tokens[2] == NodeAgent && (tokens[3] == VerbLogs || tokens[3] == VerbStream) {
			return LogsReplyPrefix(tokens[4], tokens[5])
		}
	}
	return InboxPrefix(Caller(subject))
}

// logsTokens is the number of tokens in a [LogsSubject] and in a [agent.StreamSubject].
const logsTokens = 6
