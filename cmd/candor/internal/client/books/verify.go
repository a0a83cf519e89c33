package books

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func verifyCommand(a *cli.App) *cobra.Command {
	var quick bool
	var key, keys, directory string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "check the bank's books yourself, record by record (operators)",
		Long: `Read every record of the bank's journal and check the books on this machine, not
in the bank:

  - the hash chain is correct;
  - the records add up to the balances that the records and the bank state;
  - no account went below its limit;
  - each hold ended at most once;
  - the checkpoints that the site signed match this journal;
  - each record follows from a signature or a rule: the command starts with
    empty books, carries out every signed request and every signed statement of
    another site's bank again under the bank's rules, and must get the same
    records, byte for byte. A record without such a cause is named.

Services of the site put a secret mark on their transfers. To check the marks,
the command needs the site's keys directory (--keys, or the directory of the
site on this machine). Without the keys it only counts the marks.

With --quick only the hash chain, the sums and the checkpoints are checked.
Requests are not carried out again, so nothing shows who asked for a record.

The exit code is 1 if anything is wrong. The first error is named.`,
		Example: `  candor bank verify
  candor bank verify --json
  candor bank verify --history ~/.local/state/candor/bank/1`,
		RunE: withJournal(a, &directory, func(ctx context.Context, source journalSource) error {
			return verifyBooks(ctx, a, source, quick, key, cmp.Or(keys, keysBeside(a, directory)))
		}),
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "check only the chain, the sums and the checkpoints, not who asked")
	cmd.Flags().StringVar(&key, "key", "", "public `key` of the checkpoints (default: the key of the site that issued your credentials)")
	cmd.Flags().StringVar(&keys, "keys", "", "the site's keys `directory`, to check the marks of transfers (default: of the site on this machine)")
	cmd.Flags().StringVar(&directory, "history", "", historyFlag)
	return cmd
}

type verified struct {
	Records     uint64           `json:"records"`
	Head        string           `json:"head"`
	Transfers   uint64           `json:"transfers"`
	Accounts    int              `json:"accounts"`
	Issued      messages.Credits `json:"issued"`
	Held        messages.Credits `json:"held"`
	Holds       int              `json:"holds"`
	Rules       bool             `json:"rules"`    // each record was applied again by the rules of the ledger
	Compared    int              `json:"compared"` // number of accounts whose balances agree with the bank's
	Signed      uint64           `json:"signed"`   // number of records that the latest signed checkpoint covers
	Checkpoints int              `json:"checkpoints"`
	Key         string           `json:"key"`     // key that signed the checkpoints
	Trusted     bool             `json:"trusted"` // the key is known to be the site's
	Proofs      *proofs          `json:"proofs"`  // null means the signatures of requests were not checked
}

// proofs counts the records by the kind of their proof. Each record is counted once.
type proofs struct {
	Keys      uint64 `json:"keys"`      // statements in which the site names its keys
	Requests  uint64 `json:"requests"`  // requests signed by users, operators and services
	Followed  uint64 `json:"followed"`  // records that follow from these requests
	Transfers uint64 `json:"transfers"` // transfers with the mark of a service, and the records that follow from them
	Unchecked uint64 `json:"unchecked"` // marks that could not be read because the site's keys are missing
	Forced    uint64 `json:"forced"`    // records that the rules force when some time has passed
	Peers     uint64 `json:"peers"`     // statements that the banks of other sites signed
	Settled   uint64 `json:"settled"`   // records that follow from these statements
	Passed    uint64 `json:"passed"`    // records of authorisations and cycles between sites that ended because of time
	Found     uint64 `json:"found"`     // records of observations of the leading replica, which nobody signed
}

type verification struct {
	verifier    *ledger.Verifier
	checkpoints []money.Checkpoint // checkpoints of records that were not read yet
	key         string             // key that must sign them; "" means any
	result      verified
}

func verifyBooks(ctx context.Context, a *cli.App, source journalSource, quick bool, key, keys string) error {
	v := &verification{key: cmp.Or(key, trustedKey(a)), result: verified{Rules: !quick}}
	var err error
	if v.checkpoints, err = checkpointsOf(ctx, source); err != nil {
		return err
	}
	var scratch ledger.Store
	if !quick {
		store, remove, err := scratchStore()
		if err != nil {
			return err
		}
		defer remove()
		scratch = store
	}
	v.verifier = ledger.NewVerifier(scratch)
	root, err := proofRoot(a, keys)
	if err != nil {
		return err
	}
	if root != nil {
		v.verifier.Trust(root, clearing.Again(root.Site))
	}
	if err := v.run(ctx, source); err != nil {
		return cli.Within("the books do NOT verify", err)
	}
	if root != nil && !quick {
		r := v.verifier.Proofs()
		v.result.Proofs = &proofs{Keys: r.Keys, Requests: r.Requests, Followed: r.Followed, Transfers: r.Marked, Unchecked: r.Unread, Forced: r.Forced, Peers: r.Said, Settled: r.Settled, Passed: r.Passed, Found: r.Found}
	}
	return a.Show(v.result, func(p *cli.Page) { writeVerified(p, v.result) })
}

// scratchStore returns a store on disk for the rebuilt journal, and a function that removes the store. A journal may be
// too long for memory.
func scratchStore() (ledger.Store, func(), error) {
	dir, err := os.MkdirTemp("", "candor-verify-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	files, err := history.Directory(dir)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return history.New(files, history.SegmentBytes, nil), remove, nil
}

// trustedKey returns the public key of the site that issued the user's credentials, or "" without credentials.
func trustedKey(a *cli.App) string {
	t, err := a.Resolve(false)
	if err != nil || t.Creds == "" {
		return ""
	}
	creds, err := os.ReadFile(t.Creds)
	if err != nil {
		return ""
	}
	key, err := identity.SiteKey(creds)
	if err != nil {
		return ""
	}
	return key
}

// keysBeside returns a directory with a site's keys. If `history` is the directory of a history, it is the site that
// has this history. If `history` is "", it is the site on this machine. keysBeside returns "" if there are no such
// keys.
func keysBeside(a *cli.App, history string) string {
	dir := filepath.Join(a.StateDir(), "keys")
	if history != "" {
		dir = filepath.Join(history, "..", "..", "keys")
	}
	if !isDir(dir) {
		return ""
	}
	if authority, err := identity.Open(dir); err != nil || history == "" && authority.AccountKey() != trustedKey(a) {
		return ""
	}
	return dir
}

// proofRoot returns the key that the user trusts. Every other key in a proof must be signed with it, directly or
// through other keys. It is the key in the keys directory, or else the public key of the site that issued the user's
// credentials. If there is neither, proofRoot returns nil.
func proofRoot(a *cli.App, keys string) (*ledger.Root, error) {
	if keys != "" {
		authority, err := identity.Open(keys)
		if err != nil {
			return nil, messages.Errorf(messages.Invalid, "--keys: %v", err)
		}
		exchange, err := authority.Exchange()
		if err != nil {
			return nil, err
		}
		return &ledger.Root{Site: authority.Site(), Account: authority.AccountKey(), Exchange: exchange, Later: authority.Later}, nil
	}
	key := trustedKey(a)
	if key == "" {
		return nil, nil
	}
	t, err := a.Resolve(false)
	if err != nil {
		return nil, err
	}
	return &ledger.Root{Site: t.Site, Account: key, Unread: true}, nil
}

// run checks the records and checkpoints of a journal. For a running site, it also compares the recomputed balances
// with the site's balances.
func (v *verification) run(ctx context.Context, source journalSource) error {
	err := source.each(ctx, func(_ uint64, record []byte) error {
		if err := v.verifier.Add(record); err != nil {
			return err
		}
		return v.checkpoint()
	})
	if err != nil {
		return err
	}
	live, runs := source.(*liveJournal)
	switch err := v.verifier.End(); {
	case err != nil && !runs:
		return messages.Errorf(messages.Unavailable, "%s; if the replica was killed, start and stop the replica, then try again", messages.Detail(err))
	case err != nil:
		return err
	}
	head, books := v.verifier.Head(), v.verifier.Totals()
	if !books.Balanced {
		return messages.Errorf(messages.Internal, "%s", books.Message)
	}
	r := &v.result
	r.Records, r.Head = v.verifier.Count(), hex.EncodeToString(head[:])
	r.Transfers, r.Accounts, r.Issued, r.Held, r.Holds = books.Transfers, books.Accounts, books.Issued, books.Held, books.Holds
	if len(v.checkpoints) > 0 {
		kind, why := messages.Internal, "records are missing at the end"
		if !runs {
			kind, why = messages.Unavailable, "if the replica was killed, start and stop the replica, then try again; otherwise records are missing at the end"
		}
		return messages.Errorf(kind, "the site signed a checkpoint of %d records, but the journal has only %d: %s", v.checkpoints[0].Records, r.Records, why)
	}
	if !runs {
		return nil
	}
	return v.compare(&live.last)
}

// checkpoint is called after each record. If a signed checkpoint was made after this number of records, it checks that
// the checkpoint agrees with the records.
func (v *verification) checkpoint() error {
	if len(v.checkpoints) == 0 || v.checkpoints[0].Records != v.verifier.Count() {
		return nil
	}
	c := v.checkpoints[0]
	v.checkpoints = v.checkpoints[1:]
	if err := history.Verify(&c); err != nil {
		return messages.Errorf(messages.Internal, "%v", err)
	}
	if v.key != "" && (!history.Trusted(&c, v.key) || !v.verifier.Follows(c.Succession)) {
		return messages.Errorf(messages.Internal, "the checkpoint of %d records is signed with key %s, but the site's key is %s", c.Records, c.Key, v.key)
	}
	if head := v.verifier.Head(); c.Head != hex.EncodeToString(head[:]) {
		return messages.Errorf(messages.Internal, "the site signed another history: its checkpoint of %d records has hash %s, but these records have hash %x", c.Records, c.Head, head)
	}
	v.result.Signed, v.result.Key, v.result.Trusted = c.Records, c.Key, v.key != ""
	v.result.Checkpoints++
	return nil
}

func (v *verification) compare(last *money.JournalReply) error {
	if len(last.Standings) == 0 {
		return nil
	}
	if last.Count != v.result.Records || last.Head != v.result.Head {
		return messages.Errorf(messages.Internal, "the bank states %d records with hash %s, but sent %d records with hash %s", last.Count, last.Head, v.result.Records, v.result.Head)
	}
	is := v.verifier.Standings()
	if len(is) != len(last.Standings) {
		return messages.Errorf(messages.Internal, "the bank states %d accounts, but its records have %d", len(last.Standings), len(is))
	}
	for i, stated := range last.Standings {
		if stated != is[i] {
			return messages.Errorf(messages.Internal, "the bank states balance %v and %v held for account %s, but its records sum to balance %v and %v held for %s",
				stated.Balance, stated.Reserved, stated.Account, is[i].Balance, is[i].Reserved, is[i].Account)
		}
	}
	v.result.Compared = len(is)
	return nil
}

// checkpointsOf lists the signed checkpoints of a journal. First it asks a running site to sign a new one, so that
// signatures cover all records.
func checkpointsOf(ctx context.Context, source journalSource) ([]money.Checkpoint, error) {
	if stored, ok := source.(*storedJournal); ok {
		kept, err := history.ReadCheckpoints(stored.files)
		if err == nil {
			err = kept.Damaged()
		}
		if err != nil {
			return nil, err
		}
		all, _ := kept.After(0, math.MaxInt32)
		return all, nil
	}
	live := source.(*liveJournal)
	var all []money.Checkpoint
	r := money.CheckpointsRequest{Sign: true}
	for {
		page, err := cli.Call[money.CheckpointsReply](ctx, live.session, messages.Bank, money.VerbCheckpoints, r)
		if r.Sign && messages.KindOf(err) == messages.NotFound {
			r.Sign = false // the bank runs without the site's keys
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Checkpoints...)
		if !page.More || len(page.Checkpoints) == 0 {
			return all, nil
		}
		r = money.CheckpointsRequest{After: all[len(all)-1].Records}
	}
}

func writeVerified(p *cli.Page, r verified) {
	p.Printf("The books verify: %s records\n", terminal.Count(r.Records))
	p.Printf("  the hash chain is correct; its last hash is %s\n", r.Head)
	p.Printf("  %s transfers among %s accounts add up: %v credits issued, %v of them held in %s\n",
		terminal.Count(r.Transfers), terminal.Count(r.Accounts), r.Issued, r.Held, terminal.Plural(r.Holds, "hold"))
	if r.Rules {
		p.Printf("  every record is the result of the bank's rules, byte for byte\n")
	}
	writeProofs(p, r.Rules, r.Proofs)
	if r.Compared > 0 {
		p.Printf("  %s balances match the balances that the bank states\n", terminal.Count(r.Compared))
	} else {
		p.Printf("  not checked: the balances that a running bank states\n")
	}
	switch {
	case r.Checkpoints == 0:
		p.Printf("  not checked: signatures, because no checkpoint was signed\n")
	case r.Trusted:
		p.Printf("  %s signed by the site's key; the last covers %s records\n", terminal.Plural(r.Checkpoints, "checkpoint"), terminal.Count(r.Signed))
	default:
		p.Printf("  %s signed; the last covers %s records; signed by key %s: compare this key with the site's key, or give --key\n",
			terminal.Plural(r.Checkpoints, "checkpoint"), terminal.Count(r.Signed), r.Key)
	}
}

func writeProofs(p *cli.Page, rules bool, r *proofs) {
	switch {
	case !rules:
		p.Printf("  not proven: that somebody asked for these records; to check this, leave out --quick\n")
		return
	case r == nil:
		p.Printf("  not proven: who asked, because neither credentials nor keys of the site are here\n")
		return
	}
	p.Printf("Causes of the records (each record was computed again from its cause):\n")
	basis := func(n uint64, what string) {
		if n > 0 {
			p.Printf("  %s %s\n", terminal.Count(n), what)
		}
	}
	basis(r.Keys, "statements of the site about its keys, signed with the key of its account")
	basis(r.Requests, "signed requests, each signed with a key that the site gave to the sender")
	basis(r.Followed, "records that follow from these requests under the bank's rules")
	basis(r.Transfers-r.Unchecked, "transfers, each with the mark of the service that asked")
	basis(r.Unchecked, "transfers whose marks were NOT checked: give the site's keys (--keys)")
	basis(r.Forced, "records that the rules require as time passes: holds that lapse, grants that expire")
	basis(r.Peers, "statements of other sites' banks, each signed by that bank")
	basis(r.Settled, "records that follow from these statements: they are true if that bank tells the truth, and bounded by its limit")
	basis(r.Passed, "records of requests and debts between sites that ended because time passed")
	basis(r.Found, "records of what the leading replica found, such as a silent peer or a restored backup: unproven, but they move no credits")
	p.Printf("In all: %s records follow from signatures of this site, %s from rules about time\n  (such as an expiry), %s from statements of other sites' banks, and %s from nothing that was signed and checked here\n",
		terminal.Count(r.Keys+r.Requests+r.Followed+r.Transfers-r.Unchecked), terminal.Count(r.Forced+r.Passed), terminal.Count(r.Peers+r.Settled), terminal.Count(r.Found+r.Unchecked))
	p.Printf("Not proven:\n")
	p.Printf("  the time of each record: the clock of the leading replica gave this time, and it is at most an hour before or after the signature\n")
	p.Printf("  the order of the requests\n")
	p.Printf("  that no transfer is missing after the last checkpoint that you copied to another place\n")
	p.Printf("    (a site signs a checkpoint at most a minute after a record)\n")
}
