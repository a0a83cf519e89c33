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
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

//go:embed files/*.json
var files embed.FS

// Names returns the names of all schemas, sorted. The name of a schema is the name of its Go type.
func Names() []string {
	entries, _ := files.ReadDir("files") // cannot fail, because the files are embedded
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
		return nil, messages.Errorf(messages.NotFound, "there is no schema of this name; the schemas are %s", strings.Join(Names(), ", "))
	}
	return data, nil
}

// Verb has the types of the request and the reply of a verb, such as submit.
type Verb struct {
	Actor, Verb    string
	Request, Reply string // names of schemas
	Callers        Callers
}

// Callers says who can send a request. NATS refuses requests from everybody else, except from the services of the site.
// The actor then decides whether it carries the request out.
type Callers string

// These are the kinds of callers that a verb can have.
const (
	Users    Callers = "users" // users and operators
	Nodes    Callers = "nodes"
	Peers    Callers = "peers"   // the services of other sites
	Joiners  Callers = "joiners" // agents with a join token
	Doors    Callers = "doors"   // doors, for the users of their machines
	Services Callers = "services"
)

// Verbs returns all verbs, ordered by the actor that answers them.
func Verbs() []Verb { return slices.Clone(verbs) }

var verbs = []Verb{
	{messages.Auctioneer, messages.VerbSubmit, "SubmitRequest", "SubmitReply", Users},
	{messages.Auctioneer, messages.VerbCancel, "CancelRequest", "CancelReply", Users},
	{messages.Auctioneer, job.VerbHold, "JobRequest", "HoldReply", Users},
	{messages.Auctioneer, job.VerbRelease, "JobRequest", "HoldReply", Users},
	{messages.Auctioneer, job.VerbRequeue, "RequeueRequest", "RequeueReply", Users},
	{messages.Auctioneer, job.VerbChange, "ChangeRequest", "ChangeReply", Users},
	{messages.Auctioneer, messages.VerbRegister, "RegisterRequest", "RegisterReply", Nodes},
	{messages.Auctioneer, messages.VerbExchange, "Exchange", "ExchangeReply", Nodes},
	{messages.Auctioneer, messages.VerbVector, "VectorRequest", "Vector", Nodes},
	{messages.Auctioneer, agent.VerbProxy, "ProxyRequest", "ProxyReply", Nodes},
	{messages.Auctioneer, messages.VerbKept, "JobRequest", "KeptReply", Nodes},
	{messages.Auctioneer, messages.VerbStep, "StepRequest", "StepReply", Nodes},
	{messages.Auctioneer, messages.VerbArchive, "ArchiveRequest", "ArchiveReply", Services},
	{messages.Auctioneer, market.VerbPast, "PastRequest", "PastReply", Services},
	{messages.Auctioneer, messages.VerbJobs, "JobsRequest", "JobsReply", Users},
	{messages.Auctioneer, messages.VerbJob, "JobRequest", "JobDetail", Users},
	{messages.Auctioneer, messages.VerbTasks, "TasksRequest", "TasksReply", Users},
	{messages.Auctioneer, messages.VerbWhy, "JobRequest", "WhyReply", Users},
	{messages.Auctioneer, market.VerbWhatIf, "WhatIfRequest", "WhatIfReply", Users},
	{messages.Auctioneer, messages.VerbNodes, "Empty", "NodesReply", Users},
	{messages.Auctioneer, messages.VerbMarkets, "Empty", "MarketsReply", Users},
	{messages.Auctioneer, market.VerbHistory, "HistoryRequest", "HistoryReply", Users},
	{messages.Auctioneer, messages.VerbStatus, "Empty", "StatusReply", Users},
	{messages.Auctioneer, market.VerbQuote, "QuoteRequest", "QuoteReply", Users},
	{messages.Auctioneer, clearing.VerbOffers, "OffersRequest", "OffersReply", Users},
	{messages.Auctioneer, clearing.VerbOutput, "OutputRequest", "LogsReply", Users},
	{messages.Auctioneer, clearing.VerbPeerQuote, "PeerQuoteRequest", "PeerQuoteReply", Peers},
	{messages.Auctioneer, clearing.VerbPeerSubmit, "PeerSubmitRequest", "PeerSubmitReply", Peers},
	{messages.Auctioneer, clearing.VerbPeerJob, "JobRequest", "JobDetail", Peers},
	{messages.Auctioneer, clearing.VerbPeerJobs, "PeerJobsRequest", "PeerJobsReply", Peers},
	{messages.Auctioneer, clearing.VerbPeerTasks, "TasksRequest", "TasksReply", Peers},
	{messages.Auctioneer, clearing.VerbPeerCancel, "JobRequest", "CancelReply", Peers},
	{messages.Auctioneer, clearing.VerbPeerWhy, "JobRequest", "WhyReply", Peers},
	{messages.Auctioneer, clearing.VerbPeerLogs, "OutputRequest", "LogsReply", Peers},
	{messages.Auctioneer, market.VerbReservations, "ReservationsRequest", "ReservationsReply", Users},
	{messages.Auctioneer, market.VerbApply, "ApplyRequest", "ApplyReply", Users},
	{messages.Auctioneer, market.VerbDrain, "DrainRequest", "DrainReply", Users},
	{messages.Auctioneer, market.VerbWindow, "WindowRequest", "Window", Users},
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
	{messages.Depot, job.VerbPut, "PutRequest", "PutReply", Users},
	{messages.Depot, job.VerbGet, "GetRequest", "GetReply", Users},
	{messages.Depot, job.VerbOutputs, "OutputsRequest", "OutputsReply", Users},
	{messages.Depot, job.VerbTake, "GetRequest", "GetReply", Nodes},
	{messages.Depot, job.VerbPeerTake, "GetRequest", "GetReply", Peers},
	{messages.Depot, job.VerbPeerOutputs, "OutputsRequest", "OutputsReply", Peers},
	{messages.Depot, job.VerbPeerGet, "GetRequest", "GetReply", Peers},
	{messages.Depot, job.VerbGive, "PutRequest", "PutReply", Nodes},
	{messages.Depot, job.VerbDeliver, "DeliverRequest", "Empty", Nodes},
	{messages.Bank, messages.VerbTransfer, "TransferRequest", "TransferReply", Users},
	{messages.Bank, messages.VerbGrant, "GrantRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbMember, "MemberRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbAccount, "AccountRequest", "AccountReply", Users},
	{messages.Bank, messages.VerbAccounts, "AccountsRequest", "AccountsReply", Users},
	{messages.Bank, messages.VerbStatement, "StatementRequest", "StatementReply", Users},
	{messages.Bank, messages.VerbBooks, "BooksRequest", "BooksReply", Users},
	{messages.Bank, money.VerbProject, "ProjectRequest", "AccountReply", Users},
	{messages.Bank, money.VerbPay, "PayRequest", "AccountReply", Users},
	{messages.Bank, money.VerbFreeze, "FreezeRequest", "AccountReply", Users},
	{messages.Bank, money.VerbCredit, "CreditRequest", "AccountReply", Users},
	{messages.Bank, money.VerbWithdraw, "WithdrawRequest", "AccountReply", Users},
	{messages.Bank, money.VerbCorrect, "CorrectRequest", "CorrectReply", Users},
	{messages.Bank, messages.VerbStatus, "Empty", "StatusReply", Users},
	{messages.Bank, messages.VerbTrust, "Empty", "TrustReply", Users},
	{messages.Bank, messages.VerbSession, "SessionRequest", "SessionReply", Users},
	{messages.Bank, money.VerbJournal, "JournalRequest", "JournalReply", Users},
	{messages.Bank, money.VerbCheckpoints, "CheckpointsRequest", "CheckpointsReply", Users},
	{messages.Bank, money.VerbSegment, "SegmentRequest", "SegmentReply", Services},
	{messages.Bank, clearing.VerbAuthorise, "AuthoriseRequest", "SignedAuthorisation", Users},
	{messages.Bank, clearing.VerbRevoke, "RevokeRequest", "ClearingReply", Users},
	{messages.Bank, clearing.VerbRemit, "RemitRequest", "ClearingReply", Users},
	{messages.Bank, clearing.VerbAccept, "AcceptRequest", "ClearingReply", Users},
	{messages.Bank, clearing.VerbCharge, "ChargeRequest", "ClearingReply", Users},
	{messages.Bank, clearing.VerbPeer, "PeerRequest", "PeerReply", Users},
	{messages.Bank, clearing.VerbReserve, "ReserveRequest", "AccountReply", Users},
	{messages.Bank, clearing.VerbClose, "CloseRequest", "SignedPosition", Users},
	{messages.Bank, clearing.VerbPart, "PartRequest", "PartReply", Users},
	{messages.Bank, clearing.VerbConfirm, "ConfirmRequest", "SignedTotals", Users},
	{messages.Bank, clearing.VerbAdopt, "AdoptRequest", "Adoption", Users},
	{messages.Bank, clearing.VerbPeers, "Empty", "PeersReply", Users},
	{messages.Bank, clearing.VerbInstruct, "SignedInstructions", "SignedReceipt", Peers},
	{messages.Bank, clearing.VerbLines, "LinesRequest", "SignedLines", Peers},
	{messages.Bank, clearing.VerbReconcile, "ReconcileRequest", "ReconcileReply", Users},
	{messages.Bank, clearing.VerbNet, "CycleRequest", "NettingReport", Users},
	{messages.Bank, clearing.VerbPosition, "CycleRequest", "SignedPosition", Peers},
	{messages.Bank, clearing.VerbTotals, "Empty", "SignedTotals", Peers},
	{messages.Estimator, messages.VerbUtility, "UtilityRequest", "UtilityReply", Users},
	{messages.Estimator, market.VerbRuntime, "RuntimeRequest", "RuntimeReply", Users},
	{messages.Estimator, market.VerbEstimate, "EstimateRequest", "EstimateReply", Users},
	{messages.Estimator, market.VerbClasses, "Empty", "ClassesReply", Users},
	{messages.Estimator, market.VerbSamples, "SamplesRequest", "SamplesReply", Users},
	{messages.NodeAgent, messages.VerbLogs, "LogsRequest", "LogsReply", Users},
	{messages.NodeAgent, messages.VerbStream, "StreamRequest", "StreamReply", Users},
}
