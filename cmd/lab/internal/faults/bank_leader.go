package faults

import (
	"fmt"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// bankLeader is the bank's leader. It answers requests, and repeats instructions to other banks until they answer.
type bankLeader struct {
	*site
	r     *replica
	peers map[messages.Name]*correspondent
}

// correspondent is another site's bank, as seen by a leader of this site's bank. It has what this leader remembers
// about the messages between the two banks.
type correspondent struct {
	*site
	sent messages.Time // simulated time when an unanswered message was sent; 0 means none
	hint int           // replica to ask first
	told uint64        // number of the last instruction whose outcome this bank has acknowledged to the correspondent
}

// resend is how long a bank waits for an answer before it sends a message again.
const resend = 3 * second / 2

func newBankLeader(s *site, r *replica) *bankLeader {
	o := &bankLeader{site: s, r: r, peers: map[messages.Name]*correspondent{}}
	for _, p := range s.sites {
		if p != s {
			o.peers[p.name] = &correspondent{site: p}
		}
	}
	o.turn()
	return o
}

func (o *bankLeader) gone() bool { return o.r.shell != o || o.r.host.down }

func (o *bankLeader) state() *bankState { return o.r.state.(*bankState) }

func (o *bankLeader) turn() {
	o.after(&o.r.host.host, second/2, func() {
		if o.gone() {
			return
		}
		c := o.state().clearing
		if due := c.Due(); due != 0 && due <= o.r.clock() {
			o.propose(&clearing.Command{}, nil)
		}
		o.applied()
		o.turn()
	})
}

// applied sends each peer the instructions that the peer has not answered yet.
func (o *bankLeader) applied() {
	for _, s := range o.sites {
		p := o.peers[s.name]
		if p == nil || p.sent != 0 && o.now.Sub(p.sent) < resend {
			continue
		}
		m, known := o.state().clearing.Outgoing(p.name, o.r.clock())
		if !known || len(m.List) == 0 && m.Known.Number == p.told || !o.allowed(&m) {
			continue
		}
		if p.sent != 0 {
			p.hint = (p.hint + 1) % 3
		}
		p.sent, p.told = o.now, m.Known.Number
		o.instruct(p, m)
	}
}

// allowed reports whether a message may be sent. With the inserted bug SentOnce, a message may not be sent a second
// time.
func (o *bankLeader) allowed(m *clearingmsg.Instructions) bool {
	last := m.First + uint64(len(m.List)) - 1
	if o.Bug == SentOnce && len(m.List) > 0 && last <= o.once[m.To] {
		return false
	}
	o.once[m.To] = last
	return true
}

func (o *bankLeader) instruct(p *correspondent, m clearingmsg.Instructions) {
	signed, err := clearing.SignInstructions(sealer(o.name), m)
	if err != nil {
		o.violate("instructions cannot be signed: %v", err)
		return
	}
	o.words.instructions(o.World, &m)
	to := p.banks.replicas[p.hint]
	o.send(o.r.host.name, to.host.name, func() {
		if !to.serving() {
			return
		}
		to.shell.(*bankLeader).receive(&signed, func(receipt *clearingmsg.SignedReceipt) {
			o.send(to.host.name, o.r.host.name, func() { o.learn(p, receipt) })
		})
	})
}

// receive carries out another bank's instructions. It calls the function `answer` with the receipt, if there is one.
func (o *bankLeader) receive(m *clearingmsg.SignedInstructions, answer func(*clearingmsg.SignedReceipt)) {
	reply := func(r *clearingmsg.Receipt) {
		signed, err := clearing.SignReceipt(sealer(o.name), *r)
		if err != nil {
			o.violate("a receipt cannot be signed: %v", err)
			return
		}
		o.words.receipt(o.World, r)
		answer(&signed)
	}
	if r, refused, known := o.state().clearing.Answered(m); known && o.Bug != PaidTwice {
		if refused == nil {
			reply(r)
		}
		return
	}
	o.propose(&clearing.Command{Instructions: m}, func(came any) {
		if r := came.(clearing.Result).Receipt; r != nil {
			reply(r)
		}
	})
}

func (o *bankLeader) learn(p *correspondent, r *clearingmsg.SignedReceipt) {
	if o.gone() {
		return
	}
	p.sent = 0
	m, _ := o.state().clearing.Outgoing(p.name, 0)
	if end := r.Receipt.First + uint64(len(r.Receipt.Outcomes)); len(r.Receipt.Outcomes) > 0 && end > m.First {
		o.propose(&clearing.Command{Receipt: r}, nil)
	}
}

func (o *bankLeader) propose(c *clearing.Command, answered func(any)) {
	c.At = o.r.clock()
	data, err := c.Encode()
	if err != nil {
		o.violate("a command of the clearing cannot be written down: %v", err)
		return
	}
	o.asked[string(data)] = c
	o.r.propose(data, answered)
}

// mostAtOnce is the largest number of unlinked transfers that a bank accepts in one request.
const mostAtOnce = 2

func (o *bankLeader) transfer(list []money.Transfer, answer func(any)) {
	if len(list) > mostAtOnce && !list[0].Linked {
		answer(messages.Errorf(messages.TooLarge, "%d transfers at once", len(list)))
		return
	}
	c := ledger.Command{Verb: ledger.Transfers, At: o.r.clock(), By: messages.ServiceIdentity(messages.Auctioneer), Rank: ledger.Service, Transfers: list}
	data := c.Encode()
	o.asked[string(data)] = list
	o.r.propose(data, func(came any) {
		result := came.(ledger.Result)
		if result.Error != nil {
			o.violate("the bank cannot carry out a command: %v", result.Error)
			return
		}
		answer(result.Transfers)
	})
}

// refund is an inserted bug: it frees the credits held for a payment to another site before an answer has come.
func (o *bankLeader) refund(by messages.Name, key string) {
	t := money.Transfer{ID: "refund/" + by + "/" + key, Kind: money.Void, Pending: fmt.Sprint(clearing.TransferPrefix, "remittance/", by, "/", key)}
	c := ledger.Command{Verb: ledger.Transfers, At: o.r.clock(), By: "$clearing", Rank: ledger.Clearing, Transfers: []money.Transfer{t}}
	o.r.propose(c.Encode(), nil)
}
