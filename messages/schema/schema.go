// Package schema holds the JSON Schemas (draft 2020-12) of all requests and
// replies, for clients in other languages. They are made from the Go types: a
// test compares them with the types, and
//
//	go test ./messages/schema -update
//
// writes them again. A field is required if it is always written. A reader uses the zero value for a missing field.
// Requests may have no other fields: an unknown field is refused. Replies may get new fields in later versions.
package schema

import (
	"embed"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

//go:embed files/*.json
var files embed.FS

// Names returns the names of all schemas, sorted. The name of a schema is the name of its Go type.
func Names() []string {
	entries, _ := files.ReadDir("files") // cannot fail: the files are embedded
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Get returns a schema by its name.
func Get(name string) ([]byte, error) {
	data, err := files.ReadFile("files/" + name + ".json")
	if err != nil {
		return nil, messages.Errorf(messages.NotFound, "there is no schema of that name; there are %s", strings.Join(Names(), ", "))
	}
	return data, nil
}

// Verb names the request and the reply of a verb of an actor.
type Verb struct {
	Actor, Verb    string
	Request, Reply string // names of schemas
	Callers        Callers
}

// Callers says who can send a request: NATS refuses it from all others, except the services of the site. The actor
// then decides, by who the caller is, whether it carries the request out.
type Callers string

// The callers of verbs.
const (
	Users    Callers = "users" // operators too
	Nodes    Callers = "nodes"
	Peers    Callers = "peers"   // the services of other sites
	Joiners  Callers = "joiners" // agents with a join token
	Doors    Callers = "doors"   // doors of machines, for the users there
	Services Callers = "services"
)

// Verbs returns all verbs by actor.
func Verbs() []Verb { return slices.Clone(verbs) }

var verbs = []Verb{
	{messages.Auctioneer, messages.VerbSubmit, "SubmitRequest", "SubmitReply", Users},
	{messages.Auctioneer, messages.VerbCancel, "CancelRequest", "CancelReply", Users},
	{messages.Auctioneer, messages.VerbHold, "JobRequest", "HoldReply", Users},
	{messages.Auctioneer, messages.VerbRelease, "JobRequest", "HoldReply", Users},
	{messages.Auctioneer, messages.VerbRequeue, "RequeueRequest", "RequeueReply", Users},
	{messages.Auctioneer, messages.VerbChange, "ChangeRequest", "ChangeReply", Users},
	{messages.Auctioneer, messages.VerbRegister, "RegisterRequest", "RegisterReply", Nodes},
	{messages.Auctioneer, messages.VerbExchange, "Exchange", "ExchangeReply", Nodes},
	{messages.Auctioneer, messages.VerbVector, "VectorRequest", "Vector", Nodes},
	{messages.Auctioneer, messages.VerbProxy, "ProxyRequest", "ProxyReply", Nodes},
	{messages.Auctioneer, messages.VerbKept, "JobRequest", "KeptReply", Nodes},
	{messages.Auctioneer, messages.VerbStep, "StepRequest", "StepReply", Nodes},
	{messages.Auctioneer, messages.VerbArchive, "ArchiveRequest", "ArchiveReply", Services},
	{messages.Auctioneer, messages.VerbPast, "PastRequest", "PastReply", Services},
	{messages.Auctioneer, messages.VerbJobs, "JobsRequest", "JobsReply", Users},
	{messages.Auctioneer, messages.VerbJob, "JobRequest", "JobDetail", Users},
	{messages.Auctioneer, messages.VerbTasks, "TasksRequest", "TasksReply", Users},
	{messages.Auctioneer, messages.VerbWhy, "JobRequest", "WhyReply", Users},
	{messages.Auctioneer, messages.VerbWhatIf, "WhatIfRequest", "WhatIfReply", Users},
	{messages.Auctioneer, messages.VerbNodes, "Empty", "NodesReply", Users},
	{messages.Auctioneer, messages.VerbMarkets, "Empty", "MarketsReply", Users},
	{messages.Auctioneer, messages.VerbHistory, "HistoryRequest", "HistoryReply", Users},
	{messages.Auctioneer, messages.VerbStatus, "Empty", "StatusReply", Users},
	{messages.Auctioneer, messages.VerbQuote, "QuoteRequest", "QuoteReply", Users},
	{messages.Auctioneer, messages.VerbOffers, "OffersRequest", "OffersReply", Users},
	{messages.Auctioneer, messages.VerbOutput, "OutputRequest", "LogsReply", Users},
	{messages.Auctioneer, messages.VerbPeerQuote, "PeerQuoteRequest", "PeerQuoteReply", Peers},
	{messages.Auctioneer, messages.VerbPeerSubmit, "PeerSubmitRequest", "PeerSubmitReply", Peers},
	{messages.Auctioneer, messages.VerbPeerJob, "JobRequest", "JobDetail", Peers},
	{messages.Auctioneer, messages.VerbPeerJobs, "PeerJobsRequest", "PeerJobsReply", Peers},
	{messages.Auctioneer, messages.VerbPeerTasks, "TasksRequest", "TasksReply", Peers},
	{messages.Auctioneer, messages.VerbPeerCancel, "JobRequest", "CancelReply", Peers},
	{messages.Auctioneer, messages.VerbPeerWhy, "JobRequest", "WhyReply", Peers},
	{messages.Auctioneer, messages.VerbPeerLogs, "OutputRequest", "LogsReply", Peers},
	{messages.Auctioneer, messages.VerbReservations, "ReservationsRequest", "ReservationsReply", Users},
	{messages.Auctioneer, messages.VerbApply, "ApplyRequest", "ApplyReply", Users},
	{messages.Auctioneer, messages.VerbDrain, "DrainRequest", "DrainReply", Users},
	{messages.Auctioneer, messages.VerbWindow, "WindowRequest", "Window", Users},
	{messages.Auctioneer, messages.VerbAdmit, "AdmitRequest", "TokensReply", Services},
	{messages.Auctioneer, messages.VerbReplicas, "Empty", "ReplicasReply", Users},
	{messages.Auctioneer, messages.VerbReplica, "ReplicaRequest", "ReplicasReply", Users},
	{messages.Bank, messages.VerbReplicas, "Empty", "ReplicasReply", Users},
	{messages.Bank, messages.VerbReplica, "ReplicaRequest", "ReplicasReply", Users},
	{messages.Admission, messages.VerbToken, "TokenRequest", "TokenReply", Users},
	{messages.Admission, messages.VerbTokens, "Empty", "TokensReply", Users},
	{messages.Admission, messages.VerbForget, "TokenUse", "TokenState", Users},
	{messages.Admission, messages.VerbEnrol, "EnrolRequest", "EnrolReply", Joiners},
	{messages.Admission, messages.VerbRenew, "RenewRequest", "RenewReply", Users},
	{messages.Admission, messages.VerbLend, "LendRequest", "LendReply", Doors},
	{messages.Links, messages.VerbStatus, "Empty", "LinksReply", Users},
	{messages.Depot, messages.VerbPut, "PutRequest", "PutReply", Users},
	{messages.Depot, messages.VerbGet, "GetRequest", "GetReply", Users},
	{messages.Depot, messages.VerbOutputs, "OutputsRequest", "OutputsReply", Users},
	{messages.Depot, messages.VerbTake, "GetRequest", "GetReply", Nodes},
	{messages.Depot, messages.VerbPeerTake, "GetRequest", "GetReply", Peers},
	{messages.Depot, messages.VerbPeerOutputs, "OutputsRequest", "OutputsReply", Peers},
	{messages.Depot, messages.VerbPeerGet, "GetRequest", "GetReply", Peers},
	{messages.Depot, messages.VerbGive, "PutRequest", "PutReply", Nodes},
	{messages.Depot, messages.VerbDeliver, "DeliverRequest", "Empty", Nodes},
	{messages.Bank, messages.VerbTransfer, "TransferRequest", "TransferReply", Users},
	{messages.Bank, messages.VerbGrant, "GrantRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbMember, "MemberRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbAccount, "AccountRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbAccounts, "AccountsRequest", "AccountsReply", Users},
	{messages.Bank, messages.VerbStatement, "StatementRequest", "StatementReply", Users},
	{messages.Bank, messages.VerbBooks, "BooksRequest", "BooksReply", Users},
	{messages.Bank, messages.VerbProject, "ProjectRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbPay, "PayRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbFreeze, "FreezeRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbCredit, "CreditRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbWithdraw, "WithdrawRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbCorrect, "CorrectRequest", "CorrectReply", Users},
	{messages.Bank, messages.VerbStatus, "Empty", "StatusReply", Users},
	{messages.Bank, messages.VerbTrust, "Empty", "TrustReply", Users},
	{messages.Bank, messages.VerbSession, "SessionRequest", "SessionReply", Users},
	{messages.Bank, messages.VerbJournal, "JournalRequest", "JournalReply", Users},
	{messages.Bank, messages.VerbCheckpoints, "CheckpointsRequest", "CheckpointsReply", Users},
	{messages.Bank, messages.VerbSegment, "SegmentRequest", "SegmentReply", Services},
	{messages.Bank, messages.VerbAuthorise, "AuthoriseRequest", "SignedAuthorisation", Users},
	{messages.Bank, messages.VerbRevoke, "RevokeRequest", "ClearingReply", Users},
	{messages.Bank, messages.VerbRemit, "RemitRequest", "ClearingReply", Users},
	{messages.Bank, messages.VerbAccept, "AcceptRequest", "ClearingReply", Users},
	{messages.Bank, messages.VerbCharge, "ChargeRequest", "ClearingReply", Users},
	{messages.Bank, messages.VerbPeer, "PeerRequest", "PeerReply", Users},
	{messages.Bank, messages.VerbReserve, "ReserveRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbClose, "CloseRequest", "SignedPosition", Users},
	{messages.Bank, messages.VerbPart, "PartRequest", "PartReply", Users},
	{messages.Bank, messages.VerbConfirm, "ConfirmRequest", "SignedTotals", Users},
	{messages.Bank, messages.VerbAdopt, "AdoptRequest", "Adoption", Users},
	{messages.Bank, messages.VerbPeers, "Empty", "PeersReply", Users},
	{messages.Bank, messages.VerbInstruct, "SignedInstructions", "SignedReceipt", Peers},
	{messages.Bank, messages.VerbLines, "LinesRequest", "SignedLines", Peers},
	{messages.Bank, messages.VerbReconcile, "ReconcileRequest", "ReconcileReply", Users},
	{messages.Bank, messages.VerbNet, "CycleRequest", "NettingReport", Users},
	{messages.Bank, messages.VerbPosition, "CycleRequest", "SignedPosition", Peers},
	{messages.Bank, messages.VerbTotals, "Empty", "SignedTotals", Peers},
	{messages.Estimator, messages.VerbUtility, "UtilityRequest", "UtilityReply", Users},
	{messages.Estimator, messages.VerbRuntime, "RuntimeRequest", "RuntimeReply", Users},
	{messages.Estimator, messages.VerbEstimate, "EstimateRequest", "EstimateReply", Users},
	{messages.Estimator, messages.VerbClasses, "Empty", "ClassesReply", Users},
	{messages.Estimator, messages.VerbSamples, "SamplesRequest", "SamplesReply", Users},
	{messages.NodeAgent, messages.VerbLogs, "LogsRequest", "LogsReply", Users},
	{messages.NodeAgent, messages.VerbStream, "StreamRequest", "StreamReply", Users},
}
