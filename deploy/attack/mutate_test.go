package attack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/schema"
	"github.com/candor-grid/candor/messages/wire"
)

var requests = byName(
	messages.Empty{}, job.SubmitRequest{}, job.JobRequest{}, job.CancelRequest{}, job.JobsRequest{}, job.TasksRequest{}, agent.RegisterRequest{},
	agent.Exchange{}, agent.VectorRequest{}, job.ArchiveRequest{}, agent.LogsRequest{}, agent.StreamRequest{}, job.PutRequest{}, job.GetRequest{}, job.OutputsRequest{},
	job.DeliverRequest{}, market.QuoteRequest{}, market.ReservationsRequest{}, market.ApplyRequest{}, market.DrainRequest{}, market.WindowRequest{},
	clearing.OffersRequest{}, job.RequeueRequest{}, job.ChangeRequest{}, clearing.PeerQuoteRequest{}, clearing.PeerSubmitRequest{}, clearing.PeerJobsRequest{}, clearing.OutputRequest{},
	messages.ReplicaRequest{}, messages.TokenRequest{}, messages.TokenUse{}, messages.AdmitRequest{}, messages.EnrolRequest{}, messages.RenewRequest{}, messages.LendRequest{},
	market.UtilityRequest{}, market.RuntimeRequest{}, market.EstimateRequest{}, market.SamplesRequest{}, money.TransferRequest{},
	messages.SessionRequest{}, money.GrantRequest{}, money.MemberRequest{}, money.AccountRequest{}, money.JournalRequest{},
	money.CheckpointsRequest{}, money.SegmentRequest{}, money.StatementRequest{}, money.BooksRequest{}, money.AccountsRequest{},
	money.ProjectRequest{}, money.PayRequest{}, money.FreezeRequest{}, money.CreditRequest{}, money.WithdrawRequest{},
	money.CorrectRequest{}, clearing.AuthoriseRequest{}, clearing.AcceptRequest{}, clearing.RevokeRequest{}, clearing.RemitRequest{},
	clearing.ChargeRequest{}, clearing.PeerRequest{}, clearing.PartRequest{}, clearing.ConfirmRequest{}, clearing.AdoptRequest{}, clearing.ReserveRequest{}, clearing.CloseRequest{}, clearing.SignedInstructions{},
	clearing.LinesRequest{}, clearing.ReconcileRequest{}, clearing.CycleRequest{}, market.HistoryRequest{}, market.PastRequest{}, market.WhatIfRequest{}, agent.ProxyRequest{}, agent.StepRequest{},
)

func byName(values ...any) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, v := range values {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	return types
}

func TestEveryVerbIsFuzzed(t *testing.T) {
	for _, v := range schema.Verbs() {
		if requests[v.Request] == nil {
			t.Errorf("%s %s: no %s", v.Actor, v.Verb, v.Request)
		}
	}
}

// mutated returns a request in msgpack or JSON. The request is valid or almost valid.
func mutated(t *testing.T, r *rand.Rand, request string) []byte {
	if requests[request] == nil {
		return []byte("{}") // TestEveryVerbIsFuzzed reports this error
	}
	v := reflect.New(requests[request])
	draw(r, v.Elem(), "")
	format := wire.Msgpack
	if r.IntN(3) == 0 {
		format = wire.JSON
	}
	data, err := wire.Marshal(v.Interface(), format)
	if err != nil || len(data) == 0 {
		return data // some numbers and times have no JSON form
	}
	switch r.IntN(10) {
	case 0:
		return data[:r.IntN(len(data))]
	case 1:
		at := r.IntN(len(data))
		return slices.Concat(data[:at], data[r.IntN(len(data)):])
	case 2, 3, 4:
		for range 1 + r.IntN(3) {
			data[r.IntN(len(data))] = oddBytes[r.IntN(len(oddBytes))] ^ byte(r.IntN(2)*r.IntN(256))
		}
	}
	return data
}

// oddBytes are bytes that begin lengths, numbers and nil in msgpack, or have a meaning in JSON.
var oddBytes = []byte("\x00\x7f\x80\x90\xa0\xc0\xc1\xc4\xc6\xca\xcb\xcf\xd3\xd9\xdb\xdc\xdd\xde\xdf\xff{}[]\",:0-9e")

// words has values for string fields. An entry is for the fields whose names contain the text `part`, in upper or lower
// case.
var words = []struct {
	part   string
	values []string
}{
	{"market", []string{"main"}}, {"class", []string{"map", "reduce"}}, {"node", []string{"node1", "node2", "node9"}},
	{"peer", []string{"east", "west"}}, {"site", []string{"east", "west"}}, {"issuer", []string{"east", "west"}}, {"sender", []string{"east", "west"}},
	{"acceptor", []string{"west"}}, {"digest", []string{strings.Repeat("a", 64), strings.Repeat("0", 64)}}, {"script", []string{"true", "#!/bin/sh\ntrue"}},
	{"form", []string{"linear", "log"}}, {"account", accountNames}, {"member", accountNames}, {"owner", accountNames}, {"payee", accountNames},
	{"payer", accountNames}, {"from", accountNames}, {"to", accountNames}, {"project", accountNames},
	{"key", identifiers}, {"id", identifiers}, {"transfer", identifiers}, {"hold", identifiers}, {"name", []string{"main", "a", "b"}}, {"after", []string{"main", "a"}},
}

var (
	accountNames = []string{"alice", "bob", "carol", "operator", "$bank", "$auctioneer", "$east", "site", "issuer"}
	identifiers  = []string{"k1", "k2", "k3", "k4", "k5", "k6", "1/1", "east/1", "job-1"}
	oddTexts     = []string{"", "\x00", "\xff\xfe", "../../x", "é<&\x01x", ".", "*", ">", "a b", strings.Repeat("x", 300), strings.Repeat("y", 70_000), "=1+1", "%s%n"}
)

// draw fills a value with random content. Most of it is content that a client might send.
func draw(r *rand.Rand, v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString(drawText(r, strings.ToLower(field)))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(drawInteger(r, v.Type()))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(7)))
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(drawInteger(r, v.Type())) & (math.MaxUint64 >> (64 - v.Type().Bits())))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, 1, 2, 0.5, -1, 1e300, 1e-300, math.MaxFloat64, r.NormFloat64()}[r.IntN(9)])
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			draw(r, v.Elem(), field)
		}
	case reflect.Slice:
		n := []int{0, 1, 1, 1, 2, 3, 40}[r.IntN(7)]
		if v.Type().Elem().Kind() == reflect.Struct {
			n = min(n, 3)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			draw(r, v.Index(i), field)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[job.JobSpec]() && r.IntN(2) == 0 {
			v.Set(reflect.ValueOf(plausible(r)))
			return
		}
		for i := range v.NumField() {
			if r.IntN(5) > 0 { // most fields may be missing
				draw(r, v.Field(i), v.Type().Field(i).Name)
			}
		}
	}
}

func plausible(r *rand.Rand) job.JobSpec {
	spec := job.JobSpec{Name: "fuzzed", Budget: messages.Credits(1 + r.Int64N(1000)), Stages: []job.Stage{{Name: "main", Script: "true"}}}
	if r.IntN(2) == 0 {
		draw(r, reflect.ValueOf(&spec).Elem().Field(r.IntN(reflect.TypeOf(spec).NumField())), "name")
	}
	if len(spec.Stages) > 0 && r.IntN(2) == 0 {
		stage := reflect.ValueOf(&spec.Stages[0]).Elem()
		i := r.IntN(stage.NumField())
		draw(r, stage.Field(i), stage.Type().Field(i).Name)
	}
	return spec
}

func drawText(r *rand.Rand, field string) string {
	if r.IntN(12) == 0 {
		return oddTexts[r.IntN(len(oddTexts))]
	}
	for _, w := range words {
		if strings.Contains(field, w.part) {
			return w.values[r.IntN(len(w.values))]
		}
	}
	return fmt.Sprint("text", r.IntN(10))
}

func drawInteger(r *rand.Rand, t reflect.Type) int64 {
	small := int64(r.IntN(6))
	switch r.IntN(10) {
	case 0:
		return []int64{math.MaxInt64, math.MinInt64, -1, math.MaxInt32, math.MaxUint32, math.MaxInt64 - 1}[r.IntN(6)]
	case 1:
		return r.Int64() >> r.IntN(64)
	case 2, 3, 4:
		if t == reflect.TypeFor[messages.Credits]() {
			return small * int64(messages.Credit)
		}
		if t == reflect.TypeFor[messages.Duration]() {
			return small * 1_000_000_000
		}
	}
	return small
}
