// Package schema holds the JSON Schemas (draft 2020-12) of all requests and
// replies, for clients in other languages. They are made from the Go types: a
// test compares them with the types, and
//
//	go test ./messages/schema -update
//
// writes them again. A required field is one that is always written; readers
// take one that is missing as its zero value. Requests are closed, as unknown
// fields of a request are refused; replies may gain fields.
package schema

import (
	"embed"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

//go:embed files/*.json
var files embed.FS

// Names returns the names of all schemas, sorted: those of the Go types.
func Names() []string {
	entries, _ := files.ReadDir("files") // it is embedded
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

// Verb names what a verb of an actor is asked and answers.
type Verb struct {
	Actor, Verb    string
	Request, Reply string // names of schemas
}

// Verbs returns all verbs by actor.
func Verbs() []Verb { return slices.Clone(verbs) }

var verbs = []Verb{
	{messages.Auctioneer, messages.VerbSubmit, "SubmitRequest", "SubmitReply"},
	{messages.Auctioneer, messages.VerbCancel, "CancelRequest", "CancelReply"},
	{messages.Auctioneer, messages.VerbHold, "JobRequest", "HoldReply"},
	{messages.Auctioneer, messages.VerbRelease, "JobRequest", "HoldReply"},
	{messages.Auctioneer, messages.VerbRequeue, "RequeueRequest", "RequeueReply"},
	{messages.Auctioneer, messages.VerbChange, "ChangeRequest", "ChangeReply"},
	{messages.Auctioneer, messages.VerbRegister, "RegisterRequest", "RegisterReply"},
	{messages.Auctioneer, messages.VerbExchange, "Exchange", "ExchangeReply"},
	{messages.Auctioneer, messages.VerbVector, "VectorRequest", "Vector"},
	{messages.Auctioneer, messages.VerbArchive, "ArchiveRequest", "ArchiveReply"},
	{messages.Auctioneer, messages.VerbJobs, "JobsRequest", "JobsReply"},
	{messages.Auctioneer, messages.VerbJob, "JobRequest", "JobDetail"},
	{messages.Auctioneer, messages.VerbTasks, "TasksRequest", "TasksReply"},
	{messages.Auctioneer, messages.VerbWhy, "JobRequest", "WhyReply"},
	{messages.Auctioneer, messages.VerbNodes, "Empty", "NodesReply"},
	{messages.Auctioneer, messages.VerbMarkets, "Empty", "MarketsReply"},
	{messages.Auctioneer, messages.VerbStatus, "Empty", "StatusReply"},
	{messages.Auctioneer, messages.VerbQuote, "QuoteRequest", "QuoteReply"},
	{messages.Auctioneer, messages.VerbOffers, "OffersRequest", "OffersReply"},
	{messages.Auctioneer, messages.VerbOutput, "OutputRequest", "LogsReply"},
	{messages.Auctioneer, messages.VerbPeerQuote, "PeerQuoteRequest", "PeerQuoteReply"},
	{messages.Auctioneer, messages.VerbPeerSubmit, "PeerSubmitRequest", "PeerSubmitReply"},
	{messages.Auctioneer, messages.VerbPeerJob, "JobRequest", "JobDetail"},
	{messages.Auctioneer, messages.VerbPeerJobs, "PeerJobsRequest", "PeerJobsReply"},
	{messages.Auctioneer, messages.VerbPeerTasks, "TasksRequest", "TasksReply"},
	{messages.Auctioneer, messages.VerbPeerCancel, "JobRequest", "CancelReply"},
	{messages.Auctioneer, messages.VerbPeerWhy, "JobRequest", "WhyReply"},
	{messages.Auctioneer, messages.VerbPeerLogs, "OutputRequest", "LogsReply"},
	{messages.Auctioneer, messages.VerbReservations, "ReservationsRequest", "ReservationsReply"},
	{messages.Auctioneer, messages.VerbApply, "ApplyRequest", "ApplyReply"},
	{messages.Auctioneer, messages.VerbDrain, "DrainRequest", "DrainReply"},
	{messages.Auctioneer, messages.VerbAdmit, "AdmitRequest", "TokensReply"},
	{messages.Auctioneer, messages.VerbReplicas, "Empty", "ReplicasReply"},
	{messages.Auctioneer, messages.VerbReplica, "ReplicaRequest", "ReplicasReply"},
	{messages.Bank, messages.VerbReplicas, "Empty", "ReplicasReply"},
	{messages.Bank, messages.VerbReplica, "ReplicaRequest", "ReplicasReply"},
	{messages.Admission, messages.VerbToken, "TokenRequest", "TokenReply"},
	{messages.Admission, messages.VerbTokens, "Empty", "TokensReply"},
	{messages.Admission, messages.VerbForget, "TokenUse", "TokenState"},
	{messages.Admission, messages.VerbEnrol, "EnrolRequest", "EnrolReply"},
	{messages.Admission, messages.VerbRenew, "RenewRequest", "RenewReply"},
	{messages.Links, messages.VerbStatus, "Empty", "LinksReply"},
	{messages.Depot, messages.VerbPut, "PutRequest", "PutReply"},
	{messages.Depot, messages.VerbGet, "GetRequest", "GetReply"},
	{messages.Depot, messages.VerbOutputs, "OutputsRequest", "OutputsReply"},
	{messages.Depot, messages.VerbTake, "GetRequest", "GetReply"},
	{messages.Depot, messages.VerbGive, "PutRequest", "PutReply"},
	{messages.Depot, messages.VerbDeliver, "DeliverRequest", "Empty"},
	{messages.Bank, messages.VerbTransfer, "TransferRequest", "TransferReply"},
	{messages.Bank, messages.VerbGrant, "GrantRequest", "AccountReply"},
	{messages.Bank, messages.VerbMember, "MemberRequest", "AccountReply"},
	{messages.Bank, messages.VerbAccount, "AccountRequest", "AccountReply"},
	{messages.Bank, messages.VerbAccounts, "AccountsRequest", "AccountsReply"},
	{messages.Bank, messages.VerbStatement, "StatementRequest", "StatementReply"},
	{messages.Bank, messages.VerbBooks, "BooksRequest", "BooksReply"},
	{messages.Bank, messages.VerbProject, "ProjectRequest", "AccountReply"},
	{messages.Bank, messages.VerbPay, "PayRequest", "AccountReply"},
	{messages.Bank, messages.VerbFreeze, "FreezeRequest", "AccountReply"},
	{messages.Bank, messages.VerbCredit, "CreditRequest", "AccountReply"},
	{messages.Bank, messages.VerbWithdraw, "WithdrawRequest", "AccountReply"},
	{messages.Bank, messages.VerbCorrect, "CorrectRequest", "CorrectReply"},
	{messages.Bank, messages.VerbStatus, "Empty", "StatusReply"},
	{messages.Bank, messages.VerbTrust, "Empty", "TrustReply"},
	{messages.Bank, messages.VerbSession, "SessionRequest", "SessionReply"},
	{messages.Bank, messages.VerbProve, "Empty", "TrustReply"},
	{messages.Bank, messages.VerbJournal, "JournalRequest", "JournalReply"},
	{messages.Bank, messages.VerbCheckpoints, "CheckpointsRequest", "CheckpointsReply"},
	{messages.Bank, messages.VerbSegment, "SegmentRequest", "SegmentReply"},
	{messages.Bank, messages.VerbAuthorise, "AuthoriseRequest", "SignedAuthorisation"},
	{messages.Bank, messages.VerbRevoke, "RevokeRequest", "ClearingReply"},
	{messages.Bank, messages.VerbRemit, "RemitRequest", "ClearingReply"},
	{messages.Bank, messages.VerbAccept, "AcceptRequest", "ClearingReply"},
	{messages.Bank, messages.VerbCharge, "ChargeRequest", "ClearingReply"},
	{messages.Bank, messages.VerbPeer, "PeerRequest", "PeerReply"},
	{messages.Bank, messages.VerbReserve, "ReserveRequest", "AccountReply"},
	{messages.Bank, messages.VerbClose, "CloseRequest", "SignedPosition"},
	{messages.Bank, messages.VerbPeers, "Empty", "PeersReply"},
	{messages.Bank, messages.VerbInstruct, "SignedInstructions", "SignedReceipt"},
	{messages.Bank, messages.VerbLines, "LinesRequest", "SignedLines"},
	{messages.Bank, messages.VerbReconcile, "ReconcileRequest", "ReconcileReply"},
	{messages.Bank, messages.VerbNet, "CycleRequest", "NettingReport"},
	{messages.Bank, messages.VerbPosition, "CycleRequest", "SignedPosition"},
	{messages.Estimator, messages.VerbUtility, "UtilityRequest", "UtilityReply"},
	{messages.Estimator, messages.VerbRuntime, "RuntimeRequest", "RuntimeReply"},
	{messages.Estimator, messages.VerbEstimate, "EstimateRequest", "EstimateReply"},
	{messages.Estimator, messages.VerbClasses, "Empty", "ClassesReply"},
	{messages.Estimator, messages.VerbSamples, "SamplesRequest", "SamplesReply"},
	{messages.NodeAgent, messages.VerbLogs, "LogsRequest", "LogsReply"},
}
