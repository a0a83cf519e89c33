package ledger

import (
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// model is the ledger written as plainly as possible: amounts without bounds,
// everything in maps of values, a chain carried out on a copy. It knows kinds
// of refusals, not their words.
type model struct {
	now     messages.Time
	balance map[messages.Name]*big.Int // of the accounts that are open
	granted map[messages.Name]*big.Int
	spent   map[messages.Name]*big.Int
	members map[[2]messages.Name]bool // project, member
	pending map[string]modelHold
	ended   map[string]messages.Kind // why a hold is not pending any more
	answers map[string]modelAnswer
}

type modelHold struct {
	account, payee messages.Name
	amount         messages.Credits
	expires        messages.Time
}

type modelAnswer struct {
	asked messages.Transfer
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
		members: map[[2]messages.Name]bool{}, pending: map[string]modelHold{}, ended: map[string]messages.Kind{}, answers: map[string]modelAnswer{},
	}
	m.open(messages.IssuerAccount)
	m.open(messages.SiteAccount)
	return m
}

func (m *model) open(name messages.Name) {
	m.balance[name], m.granted[name], m.spent[name] = new(big.Int), new(big.Int), new(big.Int)
}

// clone copies the maps; amounts are replaced, never changed, so they may be shared.
func (m *model) clone() *model {
	c := *m
	c.balance, c.granted, c.spent = maps.Clone(m.balance), maps.Clone(m.granted), maps.Clone(m.spent)
	c.pending, c.ended = maps.Clone(m.pending), maps.Clone(m.ended)
	return &c
}

func (m *model) isOpen(name messages.Name) bool { return m.balance[name] != nil }

// reserved adds up the pending holds of an account.
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

// advance voids what is due.
func (m *model) advance(at messages.Time) {
	m.now = max(m.now, at)
	for id, h := range m.pending {
		if h.expires != 0 && h.expires <= m.now {
			delete(m.pending, id)
			m.ended[id] = messages.Expired
		}
	}
}

// transfers answers a batch.
func (m *model) transfers(batch []messages.Transfer) []modelResult {
	var results []modelResult
	for len(batch) > 0 {
		n := slices.IndexFunc(batch, func(t messages.Transfer) bool { return !t.Linked }) + 1
		if n == 0 {
			n = len(batch)
		}
		results = append(results, m.chain(batch[:n])...)
		batch = batch[n:]
	}
	return results
}

func (m *model) chain(chain []messages.Transfer) []modelResult {
	if kind, bad := badChain(chain); bad {
		return slices.Repeat([]modelResult{{kind: kind, failed: true}}, len(chain))
	}
	if slices.ContainsFunc(chain, func(t messages.Transfer) bool { _, known := m.answers[t.ID]; return known }) {
		return m.recall(chain)
	}
	trial := m.clone()
	var results []modelResult
	for _, t := range chain {
		amount, kind, ok := trial.transfer(t)
		if !ok {
			results = slices.Repeat([]modelResult{{kind: kind, failed: true}}, len(chain))
			trial = m
			break
		}
		results = append(results, modelResult{amount: amount})
	}
	for i, t := range chain {
		trial.answers[t.ID] = modelAnswer{t, results[i]}
	}
	*m = *trial
	return results
}

// badChain leaves single transfers to Check, which has a table of its own.
func badChain(chain []messages.Transfer) (messages.Kind, bool) {
	ids := map[string]bool{}
	for i := range chain {
		if err := Check(&chain[i]); err != nil {
			return err.Kind, true
		}
		ids[chain[i].ID] = true
	}
	return messages.Invalid, len(ids) != len(chain) || chain[len(chain)-1].Linked
}

func (m *model) recall(chain []messages.Transfer) []modelResult {
	var results []modelResult
	for _, t := range chain {
		answer, known := m.answers[t.ID]
		if t.Kind == messages.Hold && answer.asked.Kind == messages.Hold {
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

func (m *model) transfer(t messages.Transfer) (messages.Credits, messages.Kind, bool) {
	switch t.Kind {
	case messages.Posted:
		return m.posted(t)
	case messages.Hold:
		return m.hold(t)
	}
	h, pending := m.pending[t.Pending]
	switch {
	case !pending && m.ended[t.Pending] != 0:
		return 0, m.ended[t.Pending], false
	case !pending:
		return 0, messages.NotFound, false
	case t.Debit != "" && t.Debit != h.account:
		return 0, messages.PermissionDenied, false
	case t.Kind == messages.Post:
		return m.post(t, h)
	case t.Amount != 0 && t.Amount != h.amount:
		return 0, messages.Invalid, false
	case t.Kind == messages.Void:
		delete(m.pending, t.Pending)
		m.ended[t.Pending] = messages.Ended
		return 0, 0, true
	}
	if h.expires != 0 && (t.Expires == 0 || t.Expires > h.expires) {
		h.expires = t.Expires
	}
	m.pending[t.Pending] = h
	return 0, 0, true
}

func (m *model) posted(t messages.Transfer) (messages.Credits, messages.Kind, bool) {
	switch {
	case !m.isOpen(t.Debit) || !m.isOpen(t.Credit):
		return 0, messages.NotFound, false
	case m.available(t.Debit).Cmp(big.NewInt(int64(t.Amount))) < 0:
		return 0, messages.Insufficient, false
	case !m.move(t.Debit, t.Credit, t.Amount):
		return 0, messages.TooLarge, false
	}
	return t.Amount, 0, true
}

func (m *model) hold(t messages.Transfer) (messages.Credits, messages.Kind, bool) {
	switch {
	case !m.isOpen(t.Debit):
		return 0, messages.NotFound, false
	case t.Member != t.Debit && !m.members[[2]messages.Name{t.Debit, t.Member}]:
		return 0, messages.PermissionDenied, false
	case t.Credit != "" && !m.isOpen(t.Credit):
		return 0, messages.NotFound, false
	case t.Expires != 0 && t.Expires <= m.now:
		return 0, messages.Expired, false
	case m.available(t.Debit).Cmp(big.NewInt(int64(t.Amount))) < 0:
		return 0, messages.Insufficient, false
	}
	m.pending[t.ID] = modelHold{t.Debit, t.Credit, t.Amount, t.Expires}
	return t.Amount, 0, true
}

func (m *model) post(t messages.Transfer, h modelHold) (messages.Credits, messages.Kind, bool) {
	payee := t.Credit
	if payee == "" {
		payee = h.payee
	}
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
	case !spent.IsInt64() || !m.move(h.account, payee, t.Amount):
		return 0, messages.TooLarge, false
	}
	m.spent[h.account] = spent
	delete(m.pending, t.Pending)
	m.ended[t.Pending] = messages.Ended
	return t.Amount, 0, true
}

// move changes two balances; false if one would not fit a Credits.
func (m *model) move(debit, credit messages.Name, amount messages.Credits) bool {
	less := new(big.Int).Sub(m.balance[debit], big.NewInt(int64(amount)))
	more := new(big.Int).Add(m.balance[credit], big.NewInt(int64(amount)))
	if !less.IsInt64() || !more.IsInt64() {
		return false
	}
	m.balance[debit], m.balance[credit] = less, more
	return true
}

// grant reports the kind of refusal.
func (m *model) grant(by messages.Name, g messages.GrantRequest) (messages.Kind, bool) {
	if err := CheckGrant(&g); err != nil {
		return err.Kind, false
	}
	t := messages.Transfer{ID: "$grant/" + by + "/" + g.Key, Debit: messages.IssuerAccount, Credit: g.Account, Amount: g.Amount, Reason: g.Reason}
	if answer, known := m.answers[t.ID]; known {
		if answer.asked != t {
			return messages.Conflict, false
		}
		return answer.kind, !answer.failed
	}
	issued := new(big.Int).Neg(m.balance[messages.IssuerAccount])
	if issued.Add(issued, big.NewInt(int64(g.Amount))).Cmp(big.NewInt(math.MaxInt64)) > 0 {
		m.answers[t.ID] = modelAnswer{t, modelResult{kind: messages.TooLarge, failed: true}}
		return messages.TooLarge, false
	}
	if !m.isOpen(g.Account) {
		m.open(g.Account)
	}
	m.move(messages.IssuerAccount, g.Account, g.Amount)
	m.granted[g.Account] = new(big.Int).Add(m.granted[g.Account], big.NewInt(int64(g.Amount)))
	m.answers[t.ID] = modelAnswer{t, modelResult{amount: g.Amount}}
	return 0, true
}

func (m *model) member(r messages.MemberRequest) (messages.Kind, bool) {
	if err := CheckMember(&r); err != nil {
		return err.Kind, false
	}
	if !m.isOpen(r.Account) {
		return messages.NotFound, false
	}
	if key := [2]messages.Name{r.Account, r.Member}; r.Remove {
		delete(m.members, key)
	} else {
		m.members[key] = true
	}
	return 0, true
}
