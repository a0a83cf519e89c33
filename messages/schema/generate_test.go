package schema

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// node is a JSON Schema, with the keywords that our schemas use.
type node struct {
	Schema      string           `json:"$schema,omitempty"`
	ID          string           `json:"$id,omitempty"`
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Type        string           `json:"type,omitempty"`
	Format      string           `json:"format,omitempty"`
	Pattern     string           `json:"pattern,omitempty"`
	Encoding    string           `json:"contentEncoding,omitempty"`
	Minimum     json.Number      `json:"minimum,omitempty"`
	Maximum     json.Number      `json:"maximum,omitempty"`
	Enum        []string         `json:"enum,omitempty"`
	AnyOf       []*node          `json:"anyOf,omitempty"`
	Items       *node            `json:"items,omitempty"`
	Properties  map[string]*node `json:"properties,omitempty"`
	Additional  *extra           `json:"additionalProperties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Defs        map[string]*node `json:"$defs,omitempty"`
}

// extra says which further properties a JSON object may have. Either they must match a schema, or there may be none.
type extra struct{ of *node }

func (e *extra) MarshalJSON() ([]byte, error) {
	if e.of == nil {
		return []byte("false"), nil
	}
	return json.Marshal(e.of)
}

func (e *extra) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		return nil
	}
	return json.Unmarshal(b, &e.of)
}

var roots = []any{
	messages.Empty{}, messages.Error{}, job.JobSpec{}, market.Market{},
	job.SubmitRequest{}, job.SubmitReply{}, job.JobRequest{}, job.CancelRequest{}, job.CancelReply{},
	job.HoldReply{}, job.RequeueRequest{}, job.RequeueReply{}, job.ChangeRequest{}, job.ChangeReply{},
	job.JobsRequest{}, job.JobsReply{}, job.JobDetail{}, job.TasksRequest{}, job.TasksReply{},
	market.WhyReply{}, market.NodesReply{}, market.MarketsReply{}, messages.StatusReply{},
	agent.RegisterRequest{}, agent.RegisterReply{}, agent.Exchange{}, agent.ExchangeReply{},
	agent.Directive{}, agent.Vector{}, agent.VectorRequest{}, job.ArchiveRequest{}, job.ArchiveReply{}, job.KeptReply{}, agent.StepRequest{}, agent.StepReply{}, agent.ProxyRequest{}, agent.ProxyReply{}, agent.LogsRequest{}, agent.LogsReply{}, agent.StreamRequest{}, agent.StreamReply{},
	clearing.LinksReply{}, job.PutRequest{}, job.PutReply{}, job.GetRequest{}, job.GetReply{},
	job.OutputsRequest{}, job.OutputsReply{}, job.DeliverRequest{},
	market.QuoteRequest{}, market.QuoteReply{}, market.ReservationsRequest{}, market.ReservationsReply{}, market.HistoryRequest{}, market.PastRequest{}, market.PastReply{}, market.WhatIfRequest{}, market.WhatIfReply{}, market.HistoryReply{},
	market.ApplyRequest{}, market.ApplyReply{}, market.DrainRequest{}, market.DrainReply{}, market.WindowRequest{}, market.Window{},
	clearing.OffersRequest{}, clearing.OffersReply{}, clearing.PeerQuoteRequest{}, clearing.PeerQuoteReply{}, clearing.PeerSubmitRequest{}, clearing.PeerSubmitReply{},
	clearing.PeerJobsRequest{}, clearing.PeerJobsReply{}, clearing.OutputRequest{},
	messages.ReplicaRequest{}, messages.ReplicasReply{}, messages.ReplicaState{},
	messages.TokenRequest{}, messages.TokenReply{}, messages.TokensReply{}, messages.TokenState{}, messages.TokenUse{}, messages.AdmitRequest{}, messages.EnrolRequest{}, messages.EnrolReply{}, messages.RenewRequest{}, messages.RenewReply{}, messages.LendRequest{}, messages.LendReply{},
	job.Observation{}, market.UtilityRequest{}, market.UtilityReply{},
	market.RuntimeRequest{}, market.RuntimeReply{}, market.EstimateRequest{}, market.EstimateReply{},
	market.ClassesReply{}, market.SamplesRequest{}, market.SamplesReply{}, job.Profile{},
	money.TransferRequest{}, money.TransferReply{}, messages.TrustReply{}, messages.SessionRequest{}, messages.SessionReply{}, money.GrantRequest{}, money.MemberRequest{},
	money.AccountRequest{}, money.AccountReply{}, money.AccountsReply{},
	money.JournalRequest{}, money.JournalReply{}, money.CheckpointsRequest{}, money.CheckpointsReply{},
	money.SegmentRequest{}, money.SegmentReply{},
	money.StatementRequest{}, money.StatementReply{}, money.BooksReply{}, money.BooksRequest{},
	money.AccountsRequest{}, money.ProjectRequest{}, money.PayRequest{}, money.FreezeRequest{},
	money.CreditRequest{}, money.WithdrawRequest{}, money.CorrectRequest{}, money.CorrectReply{},
	clearing.AuthoriseRequest{}, clearing.AcceptRequest{}, clearing.SignedAuthorisation{}, clearing.RevokeRequest{}, clearing.RemitRequest{},
	clearing.ChargeRequest{}, clearing.ClearingReply{}, clearing.PeerRequest{}, clearing.PeerReply{}, clearing.PeersReply{},
	clearing.ReserveRequest{}, clearing.CloseRequest{}, clearing.PartRequest{}, clearing.PartReply{}, clearing.SignedPosition{}, clearing.NettingReport{},
	clearing.SignedInstructions{}, clearing.SignedReceipt{}, clearing.LinesRequest{}, clearing.SignedLines{},
	clearing.ReconcileRequest{}, clearing.ReconcileReply{}, clearing.CycleRequest{},
	clearing.ConfirmRequest{}, clearing.SignedTotals{}, clearing.AdoptRequest{}, clearing.Adoption{},
}

type generator struct {
	defs   map[string]*node
	closed bool
}

func generate(t reflect.Type) *node {
	isRequest := func(v Verb) bool { return v.Request == t.Name() }
	g := &generator{defs: make(map[string]*node), closed: slices.ContainsFunc(verbs, isRequest) || t.Name() == "JobSpec" || t.Name() == "Market"}
	n := g.object(t)
	n.Schema = "https://json-schema.org/draft/2020-12/schema"
	n.ID = "urn:candor:schema:" + t.Name()
	n.Defs = g.defs
	return n
}

// special are types with a separate encoding, and their schemas.
var special = map[reflect.Type]*node{
	reflect.TypeFor[messages.Credits](): {Description: "credits, with at most six decimal places", AnyOf: []*node{
		{Type: "number", Minimum: "-1000000000000", Maximum: "1000000000000"}, {Type: "string", Pattern: `^-?[0-9]+(\.[0-9]{1,6})?$`}}},
	reflect.TypeFor[messages.Price](): {Description: "credits for a slot-second, or for a slot-hour, as in 1/h", AnyOf: []*node{
		{Type: "number", Minimum: "-1000000000000", Maximum: "1000000000000"}, {Type: "string", Pattern: `^-?[0-9]+(\.[0-9]{1,6})?( */ *[hs])?$`}}},
	reflect.TypeFor[messages.Time](): {AnyOf: []*node{{Type: "string", Format: "date-time"}, {Type: "null"}}},
	reflect.TypeFor[messages.Duration](): {Description: "like 1h30m0s, or a number of seconds", AnyOf: []*node{
		{Type: "string"}, {Type: "number"}}},
	reflect.TypeFor[job.Exit]():     {Description: "an exit code; null: there is none", AnyOf: []*node{{Type: "integer"}, {Type: "null"}}},
	reflect.TypeFor[job.Weights]():  {Description: "weights by class", Type: "object", Additional: &extra{&node{Type: "number"}}},
	reflect.TypeFor[job.Licenses](): {Description: "numbers of licences by name", Type: "object", Additional: &extra{&node{Type: "integer"}}},
	reflect.TypeFor[job.Env]():      {Description: "values by name", Type: "object", Additional: &extra{&node{Type: "string"}}},
	reflect.TypeFor[job.Labels]():   {Description: "values by name", Type: "object", Additional: &extra{&node{Type: "string"}}},
	reflect.TypeFor[job.Form]():     {Type: "string", Enum: []string{"linear", "log"}},
	reflect.TypeFor[[]byte]():       {Type: "string", Encoding: "base64"},
}

func (g *generator) of(t reflect.Type) *node {
	if n := special[t]; n != nil {
		return n
	}
	if names := members(t); names != nil {
		return &node{Type: "string", Enum: names}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &node{Type: "boolean"}
	case reflect.String:
		return &node{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &node{Type: "number"}
	case reflect.Slice:
		return &node{Type: "array", Items: g.of(t.Elem())}
	case reflect.Pointer:
		return &node{AnyOf: []*node{g.of(t.Elem()), {Type: "null"}}}
	case reflect.Struct:
		return g.refer(t)
	}
	return integer(t)
}

func integer(t reflect.Type) *node {
	n := &node{Type: "integer"}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		n.Minimum, n.Maximum = "-9223372036854775808", "9223372036854775807"
	case reflect.Uint32:
		n.Minimum, n.Maximum = "0", "4294967295"
	case reflect.Uint64:
		n.Minimum, n.Maximum = "0", "18446744073709551615"
	default:
		panic("no schema for " + t.String())
	}
	return n
}

// members returns the names of an enumeration. For other types, it returns nil.
func members(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Uint8 || !t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	for i := range math.MaxUint8 {
		v, back := reflect.New(t), reflect.New(t)
		v.Elem().SetUint(uint64(i))
		name, _ := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err := back.Interface().(encoding.TextUnmarshaler).UnmarshalText(name); err != nil || back.Elem().Uint() != uint64(i) {
			break
		}
		names = append(names, string(name))
	}
	return names
}

func (g *generator) refer(t reflect.Type) *node {
	if g.defs[t.Name()] == nil {
		g.defs[t.Name()] = g.object(t)
	}
	return &node{Ref: "#/$defs/" + t.Name()}
}

func (g *generator) object(t reflect.Type) *node {
	n := &node{Type: "object", Properties: make(map[string]*node)}
	if g.closed {
		n.Additional = &extra{}
	}
	g.fields(t, n)
	if t == reflect.TypeFor[job.SubmitRequest]() { // Jobs may take the place of Key and Spec
		n.AnyOf, n.Required = []*node{{Required: n.Required}, {Required: []string{"jobs"}}}, nil
	}
	return n
}

func (g *generator) fields(t reflect.Type, n *node) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			g.fields(f.Type, n)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		n.Properties[name] = g.of(f.Type)
		if !strings.HasPrefix(options, "omitempty") {
			n.Required = append(n.Required, name)
		}
	}
}
