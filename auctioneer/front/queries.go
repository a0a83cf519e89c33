package front

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/listing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// jobs has each auctioneer list a page, and merges the pages. Where the next page begins in
// each is the cursor of the answer: "0=…,1=…" by their numbers.
func (f *Front) jobs(ctx context.Context, caller messages.Name, r messages.JobsRequest) (reply messages.JobsReply, err error) {
	after, err := readCursor(r.After)
	if err != nil {
		return reply, err
	}
	list := func(_ int, to *auctioneer) (messages.JobsReply, error) {
		own := r
		own.After = after[to.number]
		page, err := ask[messages.JobsReply](ctx, f, to, messages.VerbJobs, caller, own)
		return page, silent(to, err)
	}
	asked := f.all
	if r.Jobs != nil {
		asked = slices.DeleteFunc(slices.Clone(f.all), func(a *auctioneer) bool {
			return a != f.all[0] && !slices.ContainsFunc(r.Jobs, func(id messages.JobID) bool { return f.numbered(id) == a })
		})
	}
	pages, err := each(asked, list)
	if found := 0; err == nil && len(asked) < len(f.all) {
		for i := range pages {
			found += len(pages[i].Jobs)
		}
		if found < len(r.Jobs) { // a job may have gone to another one with its market
			asked = f.all
			pages, err = each(asked, list)
		}
	}
	if err != nil {
		return reply, err
	}
	reply, next, err := listing.Merge(&r, pages)
	if err != nil || !reply.More {
		return reply, err
	}
	for i, a := range asked {
		if next[i] = cmp.Or(next[i], after[a.number]); next[i] != "" {
			reply.Next += strconv.Itoa(a.number) + "=" + next[i] + ","
		}
	}
	reply.Next = strings.TrimSuffix(reply.Next, ",")
	return reply, nil
}

// readCursor reads where each auctioneer is to go on, by number.
func readCursor(s string) (map[int]string, error) {
	after := map[int]string{}
	for one := range strings.SplitSeq(messages.Clip(s, maxCursor), ",") {
		if one == "" {
			continue
		}
		number, place, ok := strings.Cut(one, "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, messages.Errorf(messages.Invalid, "after: is not the end of an earlier answer; use its next")
		}
		after[n] = place
	}
	return after, nil
}

// maxCursor bounds a cursor, in bytes.
const maxCursor = messages.MaxAuctioneers * 256

func (f *Front) nodes(ctx context.Context, caller messages.Name, r messages.Empty) (reply messages.NodesReply, err error) {
	all, err := askAll[messages.NodesReply](ctx, f, messages.VerbNodes, caller, r)
	if err != nil {
		return reply, err
	}
	at := map[messages.Name]int{}
	for i := range all {
		for _, n := range all[i].Nodes {
			k, known := at[n.Node]
			switch {
			case !known:
				at[n.Node] = len(reply.Nodes)
				reply.Nodes = append(reply.Nodes, n)
			case fresher(&n, &reply.Nodes[k]): // it went from one to another
				reply.Nodes[k] = n
			}
		}
	}
	slices.SortFunc(reply.Nodes, func(a, b messages.NodeStatus) int { return cmp.Compare(a.Node, b.Node) })
	return reply, nil
}

// fresher reports whether what one auctioneer knows of a node is more recent than what another does.
func fresher(a, b *messages.NodeStatus) bool {
	if up := isUp(a); up != isUp(b) {
		return up
	}
	return a.Since > b.Since
}

func isUp(n *messages.NodeStatus) bool { return n.State != "Lost" && n.State != "Stopped" }

// serving are the auctioneers that know a node, the one that it serves first.
func (f *Front) serving(ctx context.Context, caller, node messages.Name) (list []*auctioneer, err error) {
	all, err := askAll[messages.NodesReply](ctx, f, messages.VerbNodes, caller, messages.Empty{})
	if err != nil {
		return nil, err
	}
	var best *messages.NodeStatus
	for i := range all {
		k := slices.IndexFunc(all[i].Nodes, func(n messages.NodeStatus) bool { return n.Node == node })
		switch {
		case k < 0:
		case best == nil || fresher(&all[i].Nodes[k], best):
			list, best = slices.Insert(list, 0, f.all[i]), &all[i].Nodes[k]
		default:
			list = append(list, f.all[i])
		}
	}
	if list == nil {
		list = f.all[:1] // it says that there is no such node
	}
	return list, nil
}

func (f *Front) markets(ctx context.Context, caller messages.Name, _ messages.Empty) (reply messages.MarketsReply, err error) {
	all, err := f.look(ctx, caller)
	for i := range all {
		for k := range all[i].Markets {
			all[i].Markets[k].Auctioneer = f.all[i].name
		}
		for _, m := range all[i].Markets { // one that goes from one to another is with both at the end
			k := slices.IndexFunc(reply.Markets, func(o messages.MarketStatus) bool { return o.Market.Name == m.Market.Name })
			switch {
			case k < 0 || m.Moving == nil && reply.Markets[k].Moving == nil: // two that have it are both shown
				reply.Markets = append(reply.Markets, m)
			case m.Moving == nil:
				m.Moving = reply.Markets[k].Moving
				reply.Markets[k] = m
			default:
				reply.Markets[k].Moving = m.Moving
			}
		}
		reply.Version += all[i].Version
	}
	return reply, err
}

// status says that all auctioneers have leaders, by the answer of the first.
func (f *Front) status(ctx context.Context, caller messages.Name, r messages.Empty) (reply messages.StatusReply, err error) {
	all, err := askAll[messages.StatusReply](ctx, f, messages.VerbStatus, caller, r)
	return all[0], err
}

func (f *Front) history(ctx context.Context, r *bus.Request, request *messages.HistoryRequest) ([]byte, error) {
	if request.Node == "" || request.Market != "" {
		return f.toMarket(ctx, request.Market, r)
	}
	list, err := f.serving(ctx, r.Caller, request.Node)
	if err != nil {
		return nil, err
	}
	return f.pass(ctx, list[0], r)
}

func (f *Front) reservations(ctx context.Context, r *bus.Request, request *messages.ReservationsRequest) ([]byte, error) {
	if request.Market != "" {
		return f.toMarket(ctx, request.Market, r)
	}
	all, err := askAll[messages.ReservationsReply](ctx, f, messages.VerbReservations, r.Caller, *request)
	if err != nil {
		return nil, err
	}
	var reply messages.ReservationsReply
	for i := range all {
		reply.Reservations = append(reply.Reservations, all[i].Reservations...)
	}
	slices.SortStableFunc(reply.Reservations, func(a, b messages.ReservedSlots) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Job, b.Job))
	})
	return messages.Marshal(reply, r.Format)
}
