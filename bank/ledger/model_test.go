package ledger

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// model is the ledger in its simplest form. Its amounts have no bounds. It keeps plain maps instead of records. It
// carries out linked transfers on a copy, which it drops if one of the transfers fails.
type model struct {
	now     messages.Time
	balance map[messages.Name]*big.Int // balances of the open accounts
	granted map[messages.Name]*big.Int
	spent   map[messages.Name]*big.Int
	pending map[string]modelHold
	ended   map[string]messages.Kind // why a hold is no longer pending
	answers map[string]modelAnswer
	done    uint64 // number of transfers that were carried out

	parts   map[modelPart]modelMember
	project map[messages.Name]string // titles of projects
	frozen  map[messages.Name]freezer
	credit  map[messages.Name]messages.Credits
	lots    map[modelLot]messages.Credits // free part of each lot
	dues    map[modelDue]bool
}

type modelHold struct {
	account, payee, member, by messages.Name
	amount                     messages.Credits
	expires                    messages.Time
	draws                      map[modelLot]messages.Credits // this map is never changed
}

type modelAnswer struct {
	asked money.Transfer
	by    messages.Name
	modelResult
}

type modelResult struct {
	amount messages.Credits
	kind   messages.Kind
	failed bool
}

func newModel() *model {
	m := &model{
		balance: map[messages.Name]*big.Int{}, granted: map[messages.Name]*big.Int{}, spent: map[messages.Name]*big.Int{},
		pending: map[string]modelHold{}, ended: map[string]messages.Kind{}, answers: map[string]modelAnswer{},
		parts: map[modelPart]modelMember{}, project: map[messages.Name]string{}, frozen: map[messages.Name]freezer{},
		credit: map[messages.Name]messages.Credits{}, lots: map[modelLot]messages.Credits{}, dues: map[modelDue]bool{},
	}
	m.open(money.IssuerAccount)
	m.open(money.SiteAccount)
	return m
}

func (m *model) open(name messages.Name) {
	m.balance[name], m.granted[name], m.spent[name] = new(big.Int), new(big.Int), new(big.Int)
}

// clone copies the maps that transfers change. The maps of the copy refer to the same amounts. That is safe, because an
// amount is replaced and never changed.
func (m *model) clone() *model {
	c := *m
	c.balance, c.granted, c.spent = maps.Clone(m.balance), maps.Clone(m.granted), maps.Clone(m.spent)
	c.pending, c.ended, c.answers = maps.Clone(m.pending), maps.Clone(m.ended), maps.Clone(m.answers)
	c.parts, c.lots, c.dues = maps.Clone(m.parts), maps.Clone(m.lots), maps.Clone(m.dues)
	return &c
}

func (m *model) isOpen(name messages.Name) bool { return m.balance[name] != nil }

// countable reports whether the sum of all holds and this amount is in range.
func (m *model) countable(amount messages.Credits) bool {
	sum := big.NewInt(int64(amount))
	for _, h := range m.pending {
		sum.Add(sum, big.NewInt(int64(h.amount)))
	}
	return sum.IsInt64()
}

func (m *model) reserved(name messages.Name) *big.Int {
	sum := new(big.Int)
	for _, h := range m.pending {
		if h.account == name {
			sum.Add(sum, big.NewInt(int64(h.amount)))
		}
	}
	return sum
}

func (m *model) available(name messages.Name) *big.Int {
	return new(big.Int).Sub(m.balance[name], m.reserved(name))
}

// short reports whether an amount is more than an account has: its available credits and its credit limit together.
func (m *model) short(name messages.Name, amount messages.Credits) bool {
	return name != money.IssuerAccount && m.room(name).Cmp(big.NewInt(int64(amount))) < 0
}

func (m *model) room(name messages.Name) *big.Int {
	return new(big.Int).Add(m.available(name), big.NewInt(int64(m.credit[name])))
}

func (m *model) transfers(by messages.Name, rank Rank, batch []money.Transfer) []modelResult {
	var results []modelResult
	for len(batch) > 0 {
		n := slices.IndexFunc(batch, func(t money.Transfer) bool { return !t.Linked }) + 1
		if n == 0 {
			n = len(batch)
		}
		results = append(results, m.chain(by, rank, batch[:n])...)
		batch = batch[n:]
	}
	return results
}

func (m *model) chain(by messages.Name, rank Rank, chain []money.Transfer) []modelResult {
	if kind, bad := badChain(chain); bad {
		return slices.Repeat([]modelResult{{kind: kind, failed: true}}, len(chain))
	}
	if slices.ContainsFunc(chain, func(t money.Transfer) bool { _, known := m.answers[t.ID]; return known }) {
		return m.recall(chain)
	}
	trial := m.clone()
	var results []modelResult
	for _, t := range chain {
		amount, kind, ok := trial.permitted(by, rank, t)
		if !ok {
			results = slices.Repeat([]modelResult{{kind: kind, failed: true}}, len(chain))
			trial = m
			break
		}
		results = append(results, modelResult{amount: amount})
	}
	for i, t := range chain {
		trial.answers[t.ID] = modelAnswer{t, by, results[i]}
	}
	if trial != m {
		trial.done += uint64(len(chain))
		trial.sweepAll()
	}
	*m = *trial
	return results
}

// permitted does the same as transfer. In addition, it returns an error if the caller may not charge or release the
// hold: a service may do this only to holds that it made.
func (m *model) permitted(by messages.Name, rank Rank, t money.Transfer) (messages.Credits, messages.Kind, bool) {
	maker := m.answers[t.Pending].by
	if h, pending := m.pending[t.Pending]; pending {
		maker = h.by
	}
	amount, kind, ok := m.transfer(by, t)
	if ok && resolves(t.Kind) && rank == Service && maker != by {
		return 0, messages.PermissionDenied, false
	}
	return amount, kind, ok
}

// badChain checks only the rules for chains. For each single transfer it relies on [Check], which another test covers.
func badChain(chain []money.Transfer) (messages.Kind, bool) {
	ids := map[string]bool{}
	for i := range chain {
		if err := Check(&chain[i]); err != nil {
			return err.Kind, true
		}
		ids[chain[i].ID] = true
	}
	return messages.Invalid, len(ids) != len(chain) || chain[len(chain)-1].Linked
}

func (m *model) recall(chain []money.Transfer) []modelResult {
	var results []modelResult
	for _, t := range chain {
		answer, known := m.answers[t.ID]
		if t.Kind == money.Hold && answer.asked.Kind == money.Hold {
			t.Expires = answer.asked.Expires
		}
		if known && answer.asked == t {
			results = append(results, answer.modelResult)
		} else {
			results = append(results, modelResult{kind: messages.Conflict, failed: true})
		}
	}
	return results
}

func (m *model) transfer(by messages.Name, t money.Transfer) (messages.Credits, messages.Kind, bool) {
	switch t.Kind {
	case money.Posted:
		return m.posted(t)
	case money.Hold:
		return m.hold(by, t)
	}
	h, pending := m.pending[t.Pending]
	switch {
	case !pending && m.ended[t.Pending] != 0:
		return 0, m.ended[t.Pending], false
	case !pending:
		return 0, messages.NotFound, false
	case t.Debit != "" && t.Debit != h.account:
		return 0, messages.PermissionDenied, false
	case t.Kind == money.Post:
		return m.post(t, h)
	case t.Amount != 0 && t.Amount != h.amount:
		return 0, messages.Invalid, false
	case t.Kind == money.Void:
		m.resolve(t.Pending, 0, messages.Ended)
		return h.amount, 0, true
	}
	if to := m.until(t); h.expires != 0 && (to == 0 || to > h.expires) {
		h.expires = to
	}
	m.pending[t.Pending] = h
	return h.amount, 0, true
}

func (m *model) until(t money.Transfer) messages.Time {
	if t.Timeout == 0 {
		return t.Expires
	}
	end := new(big.Int).Add(big.NewInt(int64(m.now)), big.NewInt(int64(t.Timeout)/1000))
	if !end.IsInt64() {
		return math.MaxInt64
	}
	return messages.Time(end.Int64())
}

func (m *model) posted(t money.Transfer) (messages.Credits, messages.Kind, bool) {
	switch {
	case !m.isOpen(t.Debit) || !m.isOpen(t.Credit):
		return 0, messages.NotFound, false
	case m.frozen[t.Debit] != thawed:
		return 0, messages.PermissionDenied, false
	case m.short(t.Debit, t.Amount):
		return 0, messages.Insufficient, false
	case !m.move(t.Debit, t.Credit, t.Amount):
		return 0, messages.TooLarge, false
	}
	m.take(t.Debit, t.Amount)
	return t.Amount, 0, true
}

func (m *model) hold(by messages.Name, t money.Transfer) (messages.Credits, messages.Kind, bool) {
	if !m.isOpen(t.Debit) {
		return 0, messages.NotFound, false
	}
	if kind, ok := m.mayHold(t); !ok {
		return 0, kind, false
	}
	switch {
	case m.frozen[t.Debit] != thawed:
		return 0, messages.PermissionDenied, false
	case t.Credit != "" && !m.isOpen(t.Credit):
		return 0, messages.NotFound, false
	case t.Expires != 0 && t.Expires <= m.now:
		return 0, messages.Expired, false
	case m.short(t.Debit, t.Amount):
		return 0, messages.Insufficient, false
	case !m.countable(t.Amount):
		return 0, messages.TooLarge, false
	}
	draws := m.take(t.Debit, t.Amount)
	m.pending[t.ID] = modelHold{t.Debit, t.Credit, t.Member, by, t.Amount, m.until(t), draws}
	return t.Amount, 0, true
}

func (m *model) post(t money.Transfer, h modelHold) (messages.Credits, messages.Kind, bool) {
	payee := cmp.Or(t.Credit, h.payee)
	spent := new(big.Int).Add(m.spent[h.account], big.NewInt(int64(t.Amount)))
	switch {
	case t.Amount > h.amount:
		return 0, messages.Insufficient, false
	case payee == "":
		return 0, messages.Invalid, false
	case h.payee != "" && payee != h.payee:
		return 0, messages.PermissionDenied, false
	case !m.isOpen(payee):
		return 0, messages.NotFound, false
	case payee == h.account:
		return 0, messages.Invalid, false
	case !m.move(h.account, payee, t.Amount):
		return 0, messages.TooLarge, false
	}
	m.spent[h.account] = least(spent, big.NewInt(math.MaxInt64))
	m.charge(h.account, h.member, t.Amount)
	m.resolve(t.Pending, t.Amount, messages.Ended)
	return t.Amount, 0, true
}

// resolve ends a pending hold. It spends the given amount of the hold, and frees the rest.
func (m *model) resolve(id string, spent messages.Credits, why messages.Kind) {
	h := m.pending[id]
	delete(m.pending, id)
	m.ended[id] = why
	m.settle(h.draws, spent)
}

// move changes two balances. It returns false if a balance, or its negative, would not fit in Credits.
func (m *model) move(debit, credit messages.Name, amount messages.Credits) bool {
	less := new(big.Int).Sub(m.balance[debit], big.NewInt(int64(amount)))
	more := new(big.Int).Add(m.balance[credit], big.NewInt(int64(amount)))
	if less.Cmp(big.NewInt(-math.MaxInt64)) < 0 || !more.IsInt64() {
		return false
	}
	m.balance[debit], m.balance[credit] = less, more
	return true
}
