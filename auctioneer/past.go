package auctioneer

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// The histories are not in the log. A follower copies new samples from the leader, and each replica keeps a file. So
// after a change of the leader, a history lacks only the time without a leader.

const (
	marketKey, nodeKey = "m/", "n/"
	// pastAtOnce is the approximate size limit of a reply with histories, in bytes.
	pastAtOnce = 1 << 20
	// mostPastClasses is the maximum number of classes of one market or node in a reply.
	mostPastClasses = 1000
)

// part returns samples since an instant. The histories of markets and nodes are ordered by key. The reply begins after
// the key `after`, and has as many histories as fit in it.
func (p *histories) part(from messages.Time, after string) (reply market.PastReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply.Now, reply.Since = p.last, p.since
	var keys []string
	for name := range p.markets {
		keys = append(keys, marketKey+name)
	}
	for name := range p.nodes {
		keys = append(keys, nodeKey+name)
	}
	slices.Sort(keys)
	size := 0
	for _, key := range keys {
		if key <= after {
			continue
		}
		one := p.one(key, from)
		size += sizeOf(&one)
		if size > pastAtOnce && len(reply.Parts) > 0 {
			reply.Next = reply.Parts[len(reply.Parts)-1].Key
			break
		}
		reply.Parts = append(reply.Parts, one)
	}
	return reply
}

func (p *histories) one(key string, from messages.Time) market.Past {
	one := market.Past{Key: key}
	if name, is := strings.CutPrefix(key, marketKey); is {
		m := p.markets[name]
		one.Classes, one.Steps = m.classes, m.all.Part(from)
		for account, s := range m.accounts {
			one.Accounts = append(one.Accounts, market.PastAccount{Account: account, Steps: s.Part(from)})
		}
		return one
	}
	n := p.nodes[key[len(nodeKey):]]
	one.Classes, one.Steps = n.classes, n.all.Part(from)
	return one
}

func sizeOf(p *market.Past) (size int) {
	add := func(kinds []market.PastSteps) {
		for _, k := range kinds {
			for _, s := range k.Steps {
				size += 12 + 5*len(s.Sums)
			}
		}
	}
	add(p.Steps)
	for _, a := range p.Accounts {
		add(a.Steps)
	}
	return size
}

// merge adds samples from another replica or from the file.
func (p *histories) merge(reply *market.PastReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reply.Since == 0 {
		return // the other replica has no samples yet
	}
	p.begin(reply.Since)
	for i := range reply.Parts {
		p.mergeOne(reply.Now, &reply.Parts[i])
	}
	if reply.Next == "" {
		p.last = max(p.last, reply.Now)
	}
}

// mergeOne adds the samples of one market or node, if there is room.
func (p *histories) mergeOne(now messages.Time, one *market.Past) {
	if len(one.Key) <= len(nodeKey) || len(one.Classes) > mostPastClasses {
		return
	}
	name := one.Key[len(nodeKey):]
	if strings.HasPrefix(one.Key, nodeKey) {
		if n := p.node(now, name, one.Classes); n != nil {
			n.all.Merge(one.Steps)
		}
		return
	}
	m := p.market(name, one.Classes)
	m.all.Merge(one.Steps)
	for _, a := range one.Accounts {
		if s := m.account(now, a.Account); s != nil {
			s.Merge(a.Steps)
		}
	}
}
