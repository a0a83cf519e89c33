package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/candor-grid/candor/messages"
)

// Member is a replica of a group, as the leader sees it.
type Member struct {
	ID, Address string
	Leads       bool
	Votes       bool
	Answers     bool   // the replica has answered recently
	Last        uint64 // index of the last entry of the replica's log, at its last answer
	Weak        string // why it should not lead, as it said itself; "" means that it may
	Level       int    // level of the replica's release, at its last answer; 0 means unknown
	Release     string // release of the replica, at its last answer
}

// If a replica has answered within this time, its answer counts as recent.
const lately = 2 * time.Second

// members changes the group while it works. Its methods work at the leader only; elsewhere they return ErrNotLeader.
type members struct {
	*engine
	leadership *leadership
	transport  *transport
	standing   *standing
	former     *former
}

// Members lists the replicas, by ID.
func (m *members) Members() ([]Member, error) {
	if m.leadership.current.Load() == nil {
		return nil, m.orClosed(ErrNotLeader)
	}
	servers := m.servers()
	if servers == nil {
		return nil, m.orClosed(ErrNotLeader)
	}
	var all []Member
	reports := m.standing.since(m.standing.heard, lately)
	for _, s := range servers {
		id, address := splitAddress(s.Address)
		one := Member{ID: id, Address: address, Votes: s.Suffrage == raft.Voter, Leads: id == m.config.ID, Answers: true, Last: m.raft.LastIndex(), Weak: reports[id].Weak}
		if one.Leads {
			one.Level, one.Release = m.config.limits.level, messages.ThisRelease()
		} else if told, has := m.standing.levelOf(id); has {
			one.Level, one.Release = max(told.Level, 1), told.Release
		}
		if err := m.weak(); one.Leads && err != nil {
			one.Weak = err.Error()
		}
		if !one.Leads {
			one.Last, one.Answers = m.transport.sight(s.ID, lately)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Add adds a replica to the group. It gives the replica a vote when the replica has everything that was committed when
// Add was called. The replica must already run; in its Config, Dir is empty and Bootstrap is false. The other replicas
// reach the new one at the argument `address`. It may be "" if their Config already has this address. If ctx ends
// first, the leader gives the vote later (see healer). If Add is called again, it also waits for the vote.
func (m *members) Add(ctx context.Context, id, address string) error {
	all, err := m.Members()
	if err != nil {
		return err
	}
	i := indexOf(all, id)
	if i >= 0 && all[i].Votes && (address == "" || all[i].Address == address) {
		return nil
	}
	if i >= 0 && address == "" {
		address = all[i].Address
	}
	server := raft.ServerAddress(joinAddress(id, address))
	if i < 0 || !all[i].Votes {
		if err := m.change(ctx, m.raft.AddNonvoter(raft.ServerID(id), server, 0, 0)); err != nil {
			return err
		}
		if err := m.caughtUp(ctx, id, m.raft.CommitIndex()); err != nil {
			return err
		}
	}
	return m.change(ctx, m.raft.AddVoter(raft.ServerID(id), server, 0, 0))
}

// lookEvery is the time between two checks of a replica that is catching up.
const lookEvery = 20 * time.Millisecond

// caughtUp waits until a replica's log has the entry at an index.
func (m *members) caughtUp(ctx context.Context, id string, index uint64) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		last, answers := m.transport.sight(raft.ServerID(id), lately)
		if answers && last >= index {
			return nil
		}
		if m.leadership.current.Load() == nil {
			return m.orClosed(ErrNotLeader)
		}
		select {
		case <-tick.C:
		case <-m.stopping:
			return ErrClosed
		case <-ctx.Done():
			if !answers {
				return messages.Errorf(messages.Unavailable, "replica %s does not answer, and has no vote yet: start it with an empty disk, then add it again", id)
			}
			return messages.Errorf(messages.Unavailable, "replica %s has no vote yet: it is at entry %d of %d; to wait for the replica, add the replica again", id, last, index)
		}
	}
}

// Remove removes a replica from the group. It returns Unavailable if a majority of the other replicas does not answer.
// A new leader may also return Unavailable, until the other replicas have answered it. Every group can lose some
// replicas and still work. If this number would be smaller after the removal, Remove returns a Conflict, unless `force`
// is true. A leader cannot remove itself: it hands leadership over and returns ErrNotLeader. If a removal is repeated,
// it succeeds.
func (m *members) Remove(ctx context.Context, id string, force bool) error {
	all, err := m.Members()
	if err != nil {
		return err
	}
	i := indexOf(all, id)
	if i < 0 {
		if m.former.had(id) {
			return m.committed()
		}
		return messages.Errorf(messages.NotFound, "the group has no replica %q: the replica was removed long ago, or the name is wrong; the replicas are %s", id, names(all))
	}
	left := slices.Delete(slices.Clone(all), i, i+1)
	switch now, then := Spare(all), Spare(left); {
	case then < 0:
		return messages.Errorf(messages.Unavailable, "replica %s: after its removal too few replicas answer for a majority; start replicas, or add another replica first", id)
	case then < now && !force:
		return messages.Errorf(messages.Conflict, "replica %s: after its removal the group can lose %d replicas, not %d; add another replica first, or use --force", id, then, now)
	}
	if all[i].Leads {
		m.transferOut()
		return notAppended(errors.New("the leader that will be removed has handed its leadership over"))
	}
	if err := m.change(ctx, m.raft.RemoveServer(raft.ServerID(id), 0, 0)); err != nil {
		return err
	}
	m.standing.forget(id)
	return nil
}

// committed returns ErrUnknown while the latest change of the group could still be undone.
func (m *members) committed() error {
	latest := m.raft.GetConfiguration()
	if latest.Error() != nil || latest.Index() > m.raft.CommitIndex() {
		return ErrUnknown
	}
	return nil
}

// Spare returns how many more replicas may stop answering before the group has no majority. A negative result means
// that the group has no majority now.
func Spare(all []Member) int {
	voters, answer := 0, 0
	for _, one := range all {
		if one.Votes {
			voters++
			if one.Answers {
				answer++
			}
		}
	}
	if voters == 0 {
		return -1
	}
	return answer - voters/2 - 1
}

// change waits until Raft has carried out a change of the group. If ctx ends first, the change may still happen. The
// caller then repeats its request to learn whether it did.
func (m *members) change(ctx context.Context, f raft.IndexFuture) error {
	done := make(chan error, 1)
	go func() { done <- await(f, m.gone) }()
	select {
	case err := <-done:
		if err != nil {
			return proposeError(err)
		}
		return nil
	case <-ctx.Done():
		return ErrUnknown
	}
}

func indexOf(all []Member, id string) int {
	return slices.IndexFunc(all, func(one Member) bool { return one.ID == id })
}

func names(all []Member) string {
	var ids []string
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	return strings.Join(ids, ", ")
}

// joinAddress returns a replica's address in Raft's form: its ID, an @ and the address with which it was added, such as
// "3@10.0.0.3:7000".
func joinAddress(id, address string) string {
	if address == "" {
		return id
	}
	return id + "@" + address
}

func splitAddress(a raft.ServerAddress) (id, address string) {
	id, address, _ = strings.Cut(string(a), "@")
	return id, address
}

// regroupWithin bounds the time of one request about a group. It is shorter than the time after which the caller asks
// again.
const regroupWithin = 1500 * time.Millisecond

// Regroup answers an operator's request about a group's replicas. The argument `change` is nil if the operator only
// asks for the members.
func Regroup(ctx context.Context, actor string, box Mailbox, change *messages.ReplicaRequest) (reply messages.ReplicasReply, err error) {
	g, ok := box.(*replicated)
	if !ok {
		return reply, messages.Errorf(messages.Invalid, "the %s has one replica, in memory: there is nothing to add or remove", actor)
	}
	if change != nil {
		if err := change.Validate(); err != nil {
			return reply, err
		}
		ctx, cancel := context.WithTimeout(ctx, regroupWithin)
		defer cancel()
		switch {
		case change.Raise:
			err = g.Raise(ctx)
		case change.Add != "":
			err = g.Add(ctx, change.Add, change.Address)
		default:
			err = g.Remove(ctx, change.Remove, change.Force)
		}
		if err != nil {
			return reply, groupError(err)
		}
	}
	all, err := g.Members()
	if err != nil {
		return reply, groupError(err)
	}
	reply = describe(actor, all)
	reply.Level = g.agreed()
	if g.Verify(ctx) == nil {
		reply.Applied = g.Status().Applied
	}
	return reply, nil
}

func groupError(err error) error {
	switch {
	case errors.Is(err, ErrNotLeader), errors.Is(err, ErrClosed):
		return messages.Errorf(messages.NotLeader, "this replica does not lead; ask again")
	case errors.Is(err, ErrUnknown):
		return messages.Errorf(messages.Unknown, "the outcome is not known; ask again")
	}
	return err
}

func describe(actor string, all []Member) messages.ReplicasReply {
	able := 0 // replicas that may lead; without one of them, the group serves nobody
	var last uint64
	for _, one := range all {
		if one.Leads {
			last = one.Last
		}
		if one.Weak == "" && one.Answers && one.Votes {
			able++
		}
	}
	reply := messages.ReplicasReply{Actor: actor, Spare: min(Spare(all), able-1)}
	for _, one := range all {
		reply.Replicas = append(reply.Replicas, messages.ReplicaState{ID: one.ID, Leads: one.Leads, Votes: one.Votes,
			Answers: one.Answers, Behind: last - min(last, one.Last), Address: one.Address, Weak: strings.TrimPrefix(one.Weak, "mailbox: "),
			Level: one.Level, Release: one.Release})
	}
	return reply
}
