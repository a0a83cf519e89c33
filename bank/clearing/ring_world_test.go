package clearing

import (
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

const (
	second = messages.Time(1_000_000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	// ringLimit is the maximum debt between two banks.
	ringLimit = 80 * messages.Credit
	// ringReserve is the maximum debt of all other banks together in settlement accounts.
	ringReserve = 50 * messages.Credit

	span = messages.Duration(1_000_000_000) // one second
)

// parcel is a message on the network. Exactly one of its pointers is set.
type parcel struct {
	to           int
	after        int // number of entries of the sender's log that must be on disk before the message is sent
	instructions *clearing.SignedInstructions
	receipt      *clearing.SignedReceipt
	statement    *clearing.SignedAuthorisation
}

// world has three banks in a ring, and a network between them that loses messages. The users of the banks trade with
// each other. The seed determines everything that happens.
type world struct {
	*rand.Rand
	time    messages.Time
	banks   [3]*bank
	network []parcel

	checkers []checker
	seen     observer

	statements []clearing.SignedAuthorisation // authorisations that users got
	granted    messages.Credits               // sum of the grants to users at all banks
	keys       int
	cycle      uint64
}

func site(i int) messages.Name { return [3]messages.Name{"east", "north", "west"}[i] }

var ringUsers = [3]messages.Name{"ada", "bob", "cyd"}

func newWorld(seed uint64, planted bug, under ...checker) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 5)), time: 1000 * day, checkers: under, seen: newObserver()}
	for i := range w.banks {
		w.banks[i] = newBank(site(i), planted)
		w.banks[i].offset = w.skew()
	}
	for _, b := range w.banks {
		w.open(b)
		b.sync()
	}
	return w
}

// skew returns a random error of a clock: at least 0, and less than an hour. So any two clocks differ by less than an
// hour.
func (w *world) skew() messages.Time { return messages.Time(w.Int64N(int64(hour))) }

func (w *world) open(b *bank) {
	at := b.now(w.time)
	for i := range w.banks {
		if site(i) != b.site {
			b.command(Command{At: at, By: "ops", Peer: &clearing.PeerRequest{Peer: site(i), Keys: []string{site(i)}, Limit: ringLimit}})
		}
	}
	b.command(Command{At: at, By: "ops", Reserve: &clearing.ReserveRequest{Limit: ringReserve}})
	for _, user := range ringUsers {
		w.grant(b, user, 100*messages.Credit)
	}
}

func (w *world) grant(b *bank, user messages.Name, amount messages.Credits) {
	w.keys++
	c := ledger.Command{Verb: ledger.Grant, At: b.ledger.Now(), By: "ops", Grant: moneymsg.GrantRequest{Key: fmt.Sprint(w.keys), Account: user, Amount: amount}}
	if r := b.asks(c); r.Error == nil {
		w.granted += amount
	}
}

func (w *world) step() error {
	b := w.banks[w.IntN(3)]
	switch n := w.IntN(100); {
	case n < 24:
		w.use(b)
	case n < 50:
		w.deliver()
	case n < 66:
		w.retry(b)
	case n < 84:
		w.send(b.sync())
	case n < 88:
		b.offset = w.skew()
		return b.crash(w.IntN(3))
	case n < 90:
		w.send(b.sync())
		return b.snapshot()
	case n < 95:
		w.pass()
		b.command(Command{At: b.now(w.time)})
	case n < 97:
		w.close(b)
	case n < 98:
		w.operate(b)
	default:
		w.timeout(b)
	}
	w.send(b.released())
	return nil
}

// pass lets some minutes pass. In rare cases it lets so much time pass that authorisations end at their home bank.
func (w *world) pass() {
	w.time += messages.Time(w.Int64N(int64(10 * minute)))
	switch w.IntN(40) {
	case 0:
		w.time += 3 * hour
	case 1:
		w.time += 9 * day
	}
}

// send puts messages on the network, which loses some of them. The observer sees the lost messages too.
func (w *world) send(out []parcel) {
	for _, p := range out {
		w.seen.hear(&p)
		if w.IntN(6) > 0 {
			w.network = append(w.network, p)
		}
	}
}

// deliver delivers one of the messages on the network, chosen at random. Sometimes the message stays on the network, so
// that it is delivered again.
func (w *world) deliver() {
	if len(w.network) == 0 {
		return
	}
	i := w.IntN(len(w.network))
	p := w.network[i]
	if w.IntN(4) > 0 {
		last := len(w.network) - 1
		w.network[i] = w.network[last]
		w.network = w.network[:last]
	}
	w.arrive(p)
}

func (w *world) arrive(p parcel) {
	b := w.banks[p.to]
	c := Command{At: b.now(w.time), Instructions: p.instructions, Receipt: p.receipt}
	if p.statement != nil {
		c.Accept = &clearing.AcceptRequest{Purpose: fmt.Sprint("job ", w.IntN(2)), Authorisation: *p.statement}
	}
	r := b.command(c)
	if r.Receipt == nil {
		return
	}
	signed, err := SignReceipt(sealer(b.site), *r.Receipt)
	if err != nil {
		panic(err)
	}
	b.emit(parcel{to: index(r.Receipt.To), receipt: &signed})
}

func index(s messages.Name) int {
	for i := range 3 {
		if site(i) == s {
			return i
		}
	}
	panic("no such site: " + s)
}

// retry makes a bank send again some of the instructions that the other banks have not answered.
func (w *world) retry(b *bank) {
	for i := range w.banks {
		if site(i) == b.site || w.IntN(2) == 0 {
			continue
		}
		m, _ := b.state.Outgoing(site(i), b.now(w.time))
		m.List = m.List[:w.IntN(len(m.List)+1)]
		w.dispatch(b, i, m)
	}
}

func (w *world) dispatch(b *bank, to int, m clearing.Instructions) {
	signed, err := SignInstructions(sealer(b.site), m)
	if err != nil {
		panic(err)
	}
	b.emit(parcel{to: to, instructions: &signed})
}

func (w *world) use(b *bank) {
	w.keys++
	user, peer := ringUsers[w.IntN(3)], w.other(b)
	amount := messages.Credits(1 + w.Int64N(int64(20*messages.Credit)))
	c := Command{At: b.now(w.time), By: user}
	switch w.IntN(10) {
	case 0, 1, 2:
		payee := [4]messages.Name{"ada", "bob", "cyd", "nobody"}[w.IntN(4)]
		c.Remit = &clearing.RemitRequest{Key: fmt.Sprint(w.keys), Peer: peer, Payee: payee, Amount: amount, Reason: user}
	case 3, 4, 5:
		w.authorise(b, c, peer, amount)
		return
	case 6, 7, 8:
		if w.charge(b, &c) {
			break
		}
		return
	default:
		if len(w.statements) == 0 {
			return
		}
		a := w.statements[w.IntN(len(w.statements))].Authorisation
		c.By, c.Revoke = a.Member, &clearing.RevokeRequest{ID: a.ID}
	}
	b.command(c)
}

func (w *world) other(b *bank) messages.Name {
	return site((index(b.site) + 1 + w.IntN(2)) % 3)
}

// authorise asks for an authorisation, and sends it to the peer more than once.
func (w *world) authorise(b *bank, c Command, peer messages.Name, amount messages.Credits) {
	interval := messages.Duration(w.Int64N(int64(3*3600*span))) + span
	c.Authorise = &clearing.AuthoriseRequest{Key: fmt.Sprint(w.keys - w.IntN(2)), Peer: peer, Amount: amount, Interval: interval}
	r := b.command(c)
	if r.Authorisation == nil {
		return
	}
	signed, err := SignAuthorisation(sealer(b.site), *r.Authorisation)
	if err != nil {
		panic(err)
	}
	w.statements = append(w.statements, signed)
	for range 1 + w.IntN(2) {
		b.emit(parcel{to: index(peer), statement: &signed})
	}
}

func (w *world) charge(b *bank, c *Command) bool {
	for range 4 {
		if len(w.statements) == 0 {
			return false
		}
		a := w.statements[w.IntN(len(w.statements))].Authorisation
		if b.state.acceptor.accepted.find(acceptedKey(a.Issuer, a.ID)) == nil {
			continue
		}
		amount := min(a.Amount, messages.Credits(w.Int64N(int64(25*messages.Credit))))
		c.By, c.Charge = "$auctioneer", &clearing.ChargeRequest{Issuer: a.Issuer, ID: a.ID, Amount: amount}
		return true
	}
	return false
}

// close makes one bank close its current cycle. The other banks close this cycle later.
func (w *world) close(b *bank) {
	if b.state.cycles.latest == w.cycle {
		w.cycle++
	}
	w.catchUp(b)
}

// catchUp makes a bank close each cycle that the other banks have closed.
func (w *world) catchUp(b *bank) {
	for n := b.state.cycles.latest + 1; n <= w.cycle; n++ {
		b.command(Command{At: b.now(w.time), By: "ops", Close: &clearing.CloseRequest{Cycle: n}})
	}
}

func (w *world) operate(b *bank) {
	peer := w.other(b)
	if w.IntN(2) == 0 {
		limit := messages.Credits(w.Int64N(int64(ringLimit)))
		b.command(Command{At: b.now(w.time), By: "ops", Peer: &clearing.PeerRequest{Peer: peer, Keys: []string{peer}, Limit: limit}})
		return
	}
	f := moneymsg.FreezeRequest{Account: []messages.Name{PeerAccount(peer), ringUsers[w.IntN(3)]}[w.IntN(2)], Frozen: w.IntN(3) == 0}
	c := ledger.Command{Verb: ledger.Freeze, At: b.ledger.Now(), By: "ops", Freeze: f}
	b.asks(c)
}

// timeout simulates that a request to another bank gets no answer in time. A correct bank then does nothing. A bank
// with the bug refundTimeout refunds the unanswered payments.
func (w *world) timeout(b *bank) {
	if b.bug == refundTimeout {
		b.propose([]byte{markRefund})
	}
}
