package front

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Config is what a front is started with.
type Config struct {
	Site messages.Name
	Bus  bus.Bus // that may ask each auctioneer in others' names
	// Auctioneers are all that the site has. Which markets they have is asked of them.
	Auctioneers []messages.AuctioneerMarkets
}

// Front answers for several auctioneers.
type Front struct {
	Config
	all     []*auctioneer // by number
	known   atomic.Pointer[places]
	finding sync.Mutex // one asks which auctioneer has which markets
	open    []bus.Subscription
}

// auctioneer is one of several.
type auctioneer struct {
	name   messages.Name
	number int
}

// Start serves until Close.
func Start(c Config) (*Front, error) {
	if len(c.Auctioneers) == 0 || c.Bus == nil || !messages.ValidName(c.Site) {
		return nil, messages.Errorf(messages.Invalid, "front: a site, a bus and auctioneers are needed")
	}
	f := &Front{Config: c}
	for _, a := range c.Auctioneers {
		f.all = append(f.all, &auctioneer{a.Name, a.Number})
	}
	slices.SortFunc(f.all, func(a, b *auctioneer) int { return cmp.Compare(a.number, b.number) })
	f.known.Store(&places{})
	for _, s := range f.services() {
		sub, err := c.Bus.Serve(s)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.open = append(f.open, sub)
	}
	return f, nil
}

// Close stops serving.
func (f *Front) Close() error {
	var failed []error
	for _, sub := range f.open {
		failed = append(failed, sub.Stop())
	}
	return errors.Join(failed...)
}

// atOnce is how many requests of a service may wait for auctioneers at once: so many that
// those for one that does not answer leave room for the others'.
const atOnce = 4096

// services are those of an auctioneer, but for what its replicas ask one another, and the
// exchanges of agents.
func (f *Front) services() []bus.Service {
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(f.Site, messages.Auctioneer, verb, "*"), Handle: h}
	}
	peers := []bus.Endpoint{at(messages.VerbOffers, f.first), at(messages.VerbOutput, byJob(f, func(r *messages.OutputRequest) messages.JobID { return r.Task().Job }))}
	for _, v := range messages.PeerVerbs() {
		if v.Actor == messages.Auctioneer {
			peers = append(peers, at(v.Verb, f.first))
		}
	}
	job := byJob(f, func(r *messages.JobRequest) messages.JobID { return r.Job })
	return []bus.Service{
		{Name: "candor-auctioneer-peers", Version: "1.0.0", Concurrency: atOnce, Endpoints: peers},
		{Name: "candor-auctioneer-commands", Version: "1.0.0", Concurrency: atOnce, Endpoints: []bus.Endpoint{
			at(messages.VerbSubmit, decoded(f.submit)),
			at(messages.VerbCancel, decoded(f.cancel)),
			at(messages.VerbHold, job),
			at(messages.VerbRelease, job),
			at(messages.VerbRequeue, byJob(f, func(r *messages.RequeueRequest) messages.JobID { return r.Job })),
			at(messages.VerbChange, byJob(f, func(r *messages.ChangeRequest) messages.JobID { return r.Job })),
			at(messages.VerbQuote, byMarket(f, func(r *messages.QuoteRequest) messages.Name { return r.Spec.Market })),
			at(messages.VerbDrain, bus.Handle(messages.VerbDrain, f.drain)),
			at(messages.VerbApply, bus.Handle(messages.VerbApply, f.apply)),
			at(messages.VerbAdmit, f.first),
			at(messages.VerbReplica, bus.Handle(messages.VerbReplica, f.regroup)),
		}},
		{Name: "candor-auctioneer-agents", Version: "1.0.0", Concurrency: atOnce, Endpoints: []bus.Endpoint{
			at(messages.VerbRegister, decoded(f.register)),
			at(messages.VerbVector, byMarket(f, func(r *messages.VectorRequest) messages.Name { return r.Market })),
			at(messages.VerbKept, job),
		}},
		{Name: "candor-auctioneer", Version: "1.0.0", Concurrency: atOnce, Discoverable: true,
			Description: "Jobs, nodes and markets of site " + f.Site, Endpoints: []bus.Endpoint{
				at(messages.VerbJobs, bus.Handle(messages.VerbJobs, f.jobs)),
				at(messages.VerbJob, job),
				at(messages.VerbTasks, byJob(f, func(r *messages.TasksRequest) messages.JobID { return r.Job })),
				at(messages.VerbWhy, job),
				at(messages.VerbWhatIf, byJob(f, func(r *messages.WhatIfRequest) messages.JobID { return r.Job })),
				at(messages.VerbNodes, bus.Handle(messages.VerbNodes, f.nodes)),
				at(messages.VerbMarkets, bus.Handle(messages.VerbMarkets, f.markets)),
				at(messages.VerbHistory, decoded(f.history)),
				at(messages.VerbReservations, decoded(f.reservations)),
				at(messages.VerbStatus, bus.Handle(messages.VerbStatus, f.status)),
				at(messages.VerbReplicas, bus.Handle(messages.VerbReplicas, f.replicas)),
			}},
	}
}

func verbOf(r *bus.Request) string { return strings.Split(r.Subject, ".")[3] }

// first passes a request on to the first auctioneer.
func (f *Front) first(ctx context.Context, r bus.Request) ([]byte, error) {
	return f.pass(ctx, f.all[0], &r)
}

// pass passes a request on as it came.
func (f *Front) pass(ctx context.Context, to *auctioneer, r *bus.Request) ([]byte, error) {
	payload := r.Payload
	switch r.Format {
	case messages.JSON: // the header that says so is not passed on: the first byte does
		payload = bytes.TrimLeft(payload, " \t\r\n")
	case messages.Msgpack:
		if len(payload) == 0 {
			payload = []byte{0x90} // a request without fields
		}
	}
	return f.send(ctx, to, verbOf(r), r.Caller, payload)
}

func (f *Front) send(ctx context.Context, to *auctioneer, verb string, caller messages.Name, payload []byte) ([]byte, error) {
	data, err := f.Bus.Request(ctx, messages.Subject(f.Site, messages.AuctioneerNamed(to.name), verb, caller), payload)
	if bus.Unserved(err) {
		return nil, messages.Errorf(messages.NotLeader, "auctioneer %s has no leader at this moment; ask again", to.name)
	}
	return data, err
}

// ask asks an auctioneer for an answer that is to be changed or put together with others.
func ask[Reply any](ctx context.Context, f *Front, to *auctioneer, verb string, caller messages.Name, request any) (reply Reply, err error) {
	payload, err := messages.Marshal(request, messages.Msgpack)
	if err != nil {
		return reply, err
	}
	data, err := f.send(ctx, to, verb, caller, payload)
	if err != nil {
		return reply, err
	}
	return reply, messages.Unmarshal(data, messages.Detect(data, ""), &reply)
}

// askAll asks all auctioneers the same. If one does not answer, the error says which one.
func askAll[Reply any](ctx context.Context, f *Front, verb string, caller messages.Name, request any) ([]Reply, error) {
	return each(f.all, func(_ int, to *auctioneer) (Reply, error) {
		reply, err := ask[Reply](ctx, f, to, verb, caller, request)
		return reply, silent(to, err)
	})
}

// each does the same with all of several at a time. Of several errors it returns the first
// that does not pass by itself.
func each[One, Result any](all []One, do func(int, One) (Result, error)) ([]Result, error) {
	results, failed := make([]Result, len(all)), make([]error, len(all))
	var busy sync.WaitGroup
	for i, one := range all {
		busy.Go(func() { results[i], failed[i] = do(i, one) })
	}
	busy.Wait()
	var worst error
	for _, err := range failed {
		if err != nil && (worst == nil || messages.KindOf(worst).Retriable() && !messages.KindOf(err).Retriable()) {
			worst = err
		}
	}
	return results, worst
}

// silent is the error of an auctioneer that was one of all that were asked.
func silent(of *auctioneer, err error) error {
	if err != nil && messages.KindOf(err).Retriable() {
		return messages.Errorf(messages.Unavailable, "auctioneer %s does not answer: %s", of.name, messages.Detail(err))
	}
	return err
}

// decoded is the handler of requests of a type, each with what it came as, to be passed on.
func decoded[Request any](handle func(ctx context.Context, r *bus.Request, request *Request) ([]byte, error)) bus.Handler {
	return func(ctx context.Context, r bus.Request) ([]byte, error) {
		request := new(Request)
		if err := messages.Unmarshal(r.Payload, r.Format, request); err != nil {
			return nil, err
		}
		return handle(ctx, &r, request)
	}
}

// byJob has requests about a job go to the auctioneer that the number of the job names.
func byJob[Request any](f *Front, job func(*Request) messages.JobID) bus.Handler {
	return decoded(func(ctx context.Context, r *bus.Request, request *Request) ([]byte, error) {
		return f.toJob(ctx, job(request), r)
	})
}

// toJob passes on a request about a job. The auctioneer that numbered the job has it, or knows
// what became of it, unless the job has gone to another one with its market; and it can have
// come back while the others were asked. While one does not answer that may have the job,
// nobody says that there is no such job.
func (f *Front) toJob(ctx context.Context, job messages.JobID, r *bus.Request) (reply []byte, err error) {
	first := f.numbered(job)
	if reply, err = f.pass(ctx, first, r); !missing(err, job) || len(f.all) == 1 {
		return reply, err
	}
	for _, a := range append(f.others(first), first) {
		if reply, other := f.pass(ctx, a, r); !missing(other, job) {
			return reply, silent(a, other)
		}
	}
	return nil, err
}

// missing says whether an error says that there is no such job.
func missing(err error, job messages.JobID) bool {
	return err != nil && messages.KindOf(err) == messages.NotFound && strings.HasPrefix(messages.Detail(err), "there is no job "+job.String())
}

// others are the auctioneers but for one.
func (f *Front) others(one *auctioneer) []*auctioneer {
	return slices.DeleteFunc(slices.Clone(f.all), func(a *auctioneer) bool { return a == one })
}

// numbered is the auctioneer that numbered a job. Where there is none, the first says that
// there is no such job.
func (f *Front) numbered(job messages.JobID) *auctioneer {
	for _, a := range f.all {
		if a.number == job.Auctioneer() {
			return a
		}
	}
	return f.all[0]
}
