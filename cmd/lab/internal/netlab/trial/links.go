package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// The trial of links uses three hosts (racks). Each of them has one of these roles.
const (
	leadsAuctioneer = iota
	leadsBank
	leadsNothing
)

// link is a case in which messages between two racks are lost. A number stands for a rack, for example for the rack
// with the auctioneer's leader. For each pair of numbers in `mutes`, all messages from the first rack to the second
// rack are lost.
type link struct {
	title string
	mutes [][2]int // pairs: from, to
}

// links returns the cuts to try. For each pair of racks it has a cut of both directions, and a cut of each single
// direction. The worst cut comes first.
func links() (all []link) {
	names := []string{"the auctioneer's leader", "the bank's leader", "the third rack"}
	for _, pair := range [][2]int{{leadsAuctioneer, leadsBank}, {leadsAuctioneer, leadsNothing}, {leadsBank, leadsNothing}} {
		back := [2]int{pair[1], pair[0]}
		all = append(all,
			link{names[pair[0]] + " and " + names[pair[1]], [][2]int{pair, back}},
			link{names[pair[0]] + " to " + names[pair[1]], [][2]int{pair}},
			link{names[pair[1]] + " to " + names[pair[0]], [][2]int{back}})
	}
	return all
}

// These are the length of each cut, and the longest time for which a client may not be served during a cut.
const (
	linkCut      = time.Minute
	linkCutShort = 10 * time.Second
	mostUnserved = 5 * time.Second
)

// severed cuts the links between the racks of a site, one after another, under load. The two leaders are on different
// racks, and each rack has a client. Each client must be served, and each task must run once.
func severed(ctx context.Context, t *trial, all []*member) error {
	m, cuts := all[0], links()
	dir, err := openDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ran := filepath.Join(dir, "ran")
	if err := os.WriteFile(ran, nil, 0o666); err != nil {
		return err
	}
	if err := os.Chmod(ran, 0o666); err != nil {
		return err
	}
	if t.Short {
		cuts = cuts[1:2]
	}
	acks := map[messages.JobID]string{}
	for i, l := range cuts {
		if err := m.sever(ctx, l, fmt.Sprint("link", i), dir); err != nil {
			return err
		}
		for _, a := range m.result.Acks {
			acks[a.Job] = a.Key
		}
		m.givenUp()
	}
	if err := m.settle(ctx); err != nil {
		return err
	}
	if err := m.checkOnce(ctx, acks, ran); err != nil {
		return err
	}
	return m.checkBooks(ctx)
}

// sever cuts a link for some time under load. It reports the longest time in which no request was answered.
func (m *member) sever(ctx context.Context, l link, prefix, dir string) error {
	t := m.trial
	roles, err := m.roles(ctx)
	if err != nil {
		return err
	}
	noted := func(int) job.SubmitRequest {
		return job.SubmitRequest{Spec: job.JobSpec{Name: "noted", Budget: messages.Credit, Dir: dir,
			Stages: []job.Stage{{Name: "main", Attempts: 3, Class: "map", Script: "echo $CANDOR_JOB >> ran; sleep 1"}}}}
	}
	c := load.Config{Users: users, Job: noted, Every: 500 * time.Millisecond, Prefix: prefix, Site: m.Name, Patience: linkCut + patience,
		Connect: func(user messages.Name) (bus.Bus, error) {
			return m.ConnectAt(user, m.Racks[slices.Index(users, user)])
		}}
	if m.load, err = load.Start(ctx, c); err != nil {
		return err
	}
	cutAt, err := m.severFor(ctx, l, roles)
	if err == nil {
		err = m.calm(ctx)
	}
	m.result = m.load.Stop()
	if err != nil {
		return err
	}
	longest := longestSilence(cutAt, m.result.Acks)
	t.log("%s (racks %s, %s, %s): a client was not served for %v", l.title, roles[0].Name, roles[1].Name, roles[2].Name, longest.Round(time.Millisecond))
	t.time("longest silence, cut from "+l.title, longest)
	if longest > mostUnserved {
		t.breaks("while the link from %s was cut, a client was not served for %v, which is more than %v", l.title, longest.Round(time.Millisecond), mostUnserved)
	}
	return nil
}

func (m *member) severFor(ctx context.Context, l link, roles []*netlab.Host) (cutAt time.Time, err error) {
	if err := m.load.AwaitMore(ctx, acksBetweenBlows); err != nil {
		return cutAt, err
	}
	cutAt = time.Now()
	for _, mute := range l.mutes {
		from, to := roles[mute[0]], roles[mute[1]]
		if err := from.Mute(to); err != nil {
			return cutAt, err
		}
		defer func() { err = errors.Join(err, from.Hear(to)) }()
	}
	return cutAt, wait(ctx, either(m.trial, linkCut, linkCutShort))
}

// roles returns three racks: the one that leads the auctioneer, the one that leads the bank, and the remaining one. If
// one rack leads both groups, roles first makes the bank change its leader.
func (m *member) roles(ctx context.Context) ([]*netlab.Host, error) {
	auctioneer, err := m.leads(ctx, messages.Auctioneer)
	if err != nil {
		return nil, err
	}
	bank, err := m.leads(ctx, messages.Bank)
	if err != nil {
		return nil, err
	}
	if auctioneer == bank {
		if err := m.depose(ctx, bank); err != nil {
			return nil, err
		}
		return m.roles(ctx)
	}
	i := slices.IndexFunc(m.Racks, func(h *netlab.Host) bool { return h != auctioneer && h != bank })
	return []*netlab.Host{auctioneer, bank, m.Racks[i]}, nil
}

// depose cuts the connections between the host that leads the bank and the bank's other replicas, until another host
// leads.
func (m *member) depose(ctx context.Context, h *netlab.Host) error {
	restore, err := h.Depose()
	if err != nil {
		return err
	}
	err = within(ctx, patience, func(ctx context.Context) error {
		leader, err := m.leads(ctx, messages.Bank)
		if err == nil && leader == h {
			err = messages.Errorf(messages.Unavailable, "%s still leads the bank", h.Name)
		}
		return err
	})
	return errors.Join(err, restore())
}

// longestSilence returns the longest time for which some client got no answer, from a given instant on.
func longestSilence(from time.Time, acks []load.Ack) (longest time.Duration) {
	last := map[messages.Name]time.Time{}
	for _, a := range slices.SortedFunc(slices.Values(acks), func(a, b load.Ack) int { return a.Acked.Compare(b.Acked) }) {
		if a.Acked.Before(from) {
			continue
		}
		before, seen := last[a.User]
		if !seen {
			before = from
		}
		longest, last[a.User] = max(longest, a.Acked.Sub(before)), a.Acked
	}
	return longest
}

// checkOnce checks that each acknowledged job has completed, that each task ran once, and that no node lost its lease.
// Each task writes its job's number to a file.
func (m *member) checkOnce(ctx context.Context, acks map[messages.JobID]string, ran string) error {
	jobs, err := m.jobs(ctx)
	if err != nil {
		return err
	}
	noted, err := os.ReadFile(ran)
	if err != nil {
		return err
	}
	runs := map[string]int{}
	for _, line := range bytes.Fields(noted) {
		runs[string(line)]++
	}
	t, twice, leases := m.trial, 0, 0
	for id := range jobs {
		if runs[id.String()] > 1 {
			twice++
		}
	}
	for id, key := range acks {
		if jobs[id].State != job.Completed || runs[id.String()] == 0 {
			t.breaks("submission %s was acknowledged as job %v, but this job is %v, and ran %d times", key, id, jobs[id].State, runs[id.String()])
		}
	}
	for _, h := range m.Hosts() {
		leases += bytes.Count([]byte(h.Log(0)), []byte("lost the lease"))
	}
	t.count("acknowledged", len(acks))
	t.count("tasks that ran twice", twice)
	t.count("leases that nodes lost", leases)
	if twice > 0 || leases > 0 {
		t.breaks("%d tasks ran twice, and nodes lost %d leases", twice, leases)
	}
	return nil
}
