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
)

func verifyCommand(a *cli.App) *cobra.Command {
	var genesis bool
	var key, keys, directory string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "check the bank's books yourself, record by record (operators)",
		Long: `Read every record of the bank's journal and check the books on this machine, not
in the bank:

  - the hash chain holds;
  - the records add up to the balances that the records and the bank state;
  - no account went below its limit;
  - each hold ended at most once;
  - the checkpoints that the site signed are of this journal;
  - since the site requires proofs, each record that issues or moves credits has
    a proof of who asked;
  - each movement of credits between sites follows from what the other site's
    bank signed, with a key that an operator of this site named.

The marks of transfers need the site's keys directory (--keys, or the directory
of the site on this machine). Without the keys the marks are counted, not
checked.

With --from-genesis the rules of the bank are carried out again for every
record, in an empty ledger, and must give the same bytes. Records of earlier
releases do not say whether a user or an operator asked: the check assumes the
person who may.

What other sites signed is in the journal since this release. Earlier movements
between sites are counted, not checked.

The exit code is 1 if anything is wrong. The first error is named.`,
		Example: `  candor bank verify
  candor bank verify --from-genesis --json
  candor bank verify --history ~/.local/state/candor/bank/1`,
		RunE: withJournal(a, &directory, func(ctx context.Context, source journalSource) error {
			return verifyBooks(ctx, a, source, genesis, key, cmp.Or(keys, keysBeside(a, directory)))
		}),
	}
	cmd.Flags().BoolVar(&genesis, "from-genesis", false, "carry out every record again under the bank's rules")
	cmd.Flags().StringVar(&key, "key", "", "public `key` of the checkpoints (default: the key of the site that issued your credentials)")
	cmd.Flags().StringVar(&keys, "keys", "", "the site's keys `directory`, to check the marks of transfers (default: of the site on this machine)")
	cmd.Flags().StringVar(&directory, "history", "", historyFlag)
	return cmd
}

// verified is what was checked.
type verified struct {
	Records     uint64           `json:"records"`
	Head        string           `json:"head"`
	Transfers   uint64           `json:"transfers"`
	Accounts    int              `json:"accounts"`
	Issued      messages.Credits `json:"issued"`
	Held        messages.Credits `json:"held"`
	Holds       int              `json:"holds"`
	Rules       bool             `json:"rules"`    // each record was carried out again
	Compared    int              `json:"compared"` // accounts of which the bank stated the same
	Signed      uint64           `json:"signed"`   // records under the latest checkpoint
	Checkpoints int              `json:"checkpoints"`
	Key         string           `json:"key"`     // that signed them
	Trusted     bool             `json:"trusted"` // the key is known to be the site's
	Proofs      *proofs          `json:"proofs"`  // null: who asked was not checked
}

// proofs is what is proven of a journal.
type proofs struct {
	From      uint64 `json:"from"`      // the first record from which on everything is; 0: nothing is
	Requests  uint64 `json:"requests"`  // under signatures
	Transfers uint64 `json:"transfers"` // under marks
	Unchecked uint64 `json:"unchecked"` // under marks that were not read for want of the site's keys
	Forced    uint64 `json:"forced"`    // records that follow from the rules
	Clearing  uint64 `json:"clearing"`  // records of settlements with other sites
	Peers     uint64 `json:"peers"`     // statements that the banks of other sites signed
	Unheard   uint64 `json:"unheard"`   // movements between sites from before the journal had such statements
}

// verification is a check under way.
type verification struct {
	verifier    *ledger.Verifier
	checkpoints []messages.Checkpoint // those still to come
	key         string                // that they must be signed with; "": any
	result      verified
}

// verifyBooks checks a journal and says what was checked.
func verifyBooks(ctx context.Context, a *cli.App, source journalSource, genesis bool, key, keys string) error {
	v := &verification{key: cmp.Or(key, trustedKey(a)), result: verified{Rules: genesis}}
	var err error
	if v.checkpoints, err = checkpointsOf(ctx, source); err != nil {
		return err
	}
	var scratch ledger.Store
	if genesis {
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
		v.verifier.Trust(root, clearing.NewWitness(root.Site))
	}
	if err := v.run(ctx, source); err != nil {
		return cli.Within("the books do NOT verify", err)
	}
	if root != nil {
		r := v.verifier.Proofs()
		v.result.Proofs = &proofs{From: r.From, Requests: r.Requests, Transfers: r.Marked, Unchecked: r.Unread, Forced: r.Forced, Clearing: r.Clearing, Peers: r.Said, Unheard: r.Unheard}
	}
	return a.Show(v.result, func(p *cli.Page) { writeVerified(p, v.result) })
}

// scratchStore keeps a second journal while the first is checked, on disk, for
// it may be long.
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

// trustedKey is the public key of the site that issued the credentials in
// use, "" if there are none.
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

// keysBeside is the keys directory of the site whose history is named, or of the
// site on this machine; "" if it is not here.
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

// proofRoot is the root of trust for proofs: that of a keys directory, or else the public
// key of the site that issued the credentials in use; nil if there is neither.
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
		from, err := authority.ProvenFrom()
		return &ledger.Root{Site: authority.Site(), Account: authority.AccountKey(), Exchange: exchange, Later: authority.Later, From: from}, err
	}
	key := trustedKey(a)
	if key == "" {
		return nil, nil
	}
	t, err := a.Resolve(false)
	if err != nil {
		return nil, err
	}
	return &ledger.Root{Site: t.Site, Account: key}, nil
}

// run reads the journal, and compares the result with what the bank states.
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
		return messages.Errorf(messages.Unavailable, "%s; if the replica did not stop in order, start and stop the replica, then try again", messages.Detail(err))
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
			kind, why = messages.Unavailable, "if the replica did not stop in order, start and stop the replica, then try again; else records are missing at the end"
		}
		return messages.Errorf(kind, "the site signed a checkpoint of %d records, and there are %d: %s", v.checkpoints[0].Records, r.Records, why)
	}
	if !runs {
		return nil
	}
	return v.compare(&live.last)
}

// checkpoint checks the checkpoint of the records added so far, if there is one.
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
		return messages.Errorf(messages.Internal, "the checkpoint of %d records is signed with key %s, and the site's is %s", c.Records, c.Key, v.key)
	}
	if head := v.verifier.Head(); c.Head != hex.EncodeToString(head[:]) {
		return messages.Errorf(messages.Internal, "the site signed another history: its checkpoint of %d records has hash %s, and these records come to %x", c.Records, c.Head, head)
	}
	v.result.Signed, v.result.Key, v.result.Trusted = c.Records, c.Key, v.key != ""
	v.result.Checkpoints++
	return nil
}

// compare holds the balances that the bank states against those recomputed.
func (v *verification) compare(last *messages.JournalReply) error {
	if len(last.Standings) == 0 {
		return nil
	}
	if last.Count != v.result.Records || last.Head != v.result.Head {
		return messages.Errorf(messages.Internal, "the bank states %d records with hash %s, and sent %d with hash %s", last.Count, last.Head, v.result.Records, v.result.Head)
	}
	is := v.verifier.Standings()
	if len(is) != len(last.Standings) {
		return messages.Errorf(messages.Internal, "the bank states %d accounts, and its records are of %d", len(last.Standings), len(is))
	}
	for i, stated := range last.Standings {
		if stated != is[i] {
			return messages.Errorf(messages.Internal, "the bank states balance %v and %v held for account %s, and its records come to %v and %v for %s",
				stated.Balance, stated.Reserved, stated.Account, is[i].Balance, is[i].Reserved, is[i].Account)
		}
	}
	v.result.Compared = len(is)
	return nil
}

// checkpointsOf lists the signed checkpoints that go with a journal. A site
// that runs is asked to sign another one first, so that all is signed.
func checkpointsOf(ctx context.Context, source journalSource) ([]messages.Checkpoint, error) {
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
	var all []messages.Checkpoint
	r := messages.CheckpointsRequest{Sign: true}
	for {
		page, err := cli.Call[messages.CheckpointsReply](ctx, live.session, messages.Bank, messages.VerbCheckpoints, r)
		if r.Sign && messages.KindOf(err) == messages.NotFound {
			r.Sign = false // it runs without the site's keys
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Checkpoints...)
		if !page.More || len(page.Checkpoints) == 0 {
			return all, nil
		}
		r = messages.CheckpointsRequest{After: all[len(all)-1].Records}
	}
}

// writeVerified says what was checked.
func writeVerified(p *cli.Page, r verified) {
	p.Printf("The books verify: %s records\n", terminal.Count(r.Records))
	p.Printf("  the hash chain holds, up to %s\n", r.Head)
	p.Printf("  %s transfers among %s accounts add up: %v credits issued, %v of them held in %s\n",
		terminal.Count(r.Transfers), terminal.Count(r.Accounts), r.Issued, r.Held, terminal.Plural(r.Holds, "hold"))
	if r.Rules {
		p.Printf("  every record, carried out again under the bank's rules, came to the same bytes\n")
	}
	writeProofs(p, r.Proofs)
	if r.Compared > 0 {
		p.Printf("  %s balances are what the bank states\n", terminal.Count(r.Compared))
	} else {
		p.Printf("  not checked: what a running bank states now\n")
	}
	switch {
	case r.Checkpoints == 0:
		p.Printf("  not checked: signatures, for no checkpoint was signed\n")
	case r.Trusted:
		p.Printf("  %s signed by the site's key, the last of %s records\n", terminal.Plural(r.Checkpoints, "checkpoint"), terminal.Count(r.Signed))
	default:
		p.Printf("  %s signed, the last of %s records, by key %s: compare it with the site's, or give --key\n",
			terminal.Plural(r.Checkpoints, "checkpoint"), terminal.Count(r.Signed), r.Key)
	}
}

// writeProofs says who was proven to have asked.
func writeProofs(p *cli.Page, r *proofs) {
	switch {
	case r == nil:
		p.Printf("  not checked: who asked, for neither credentials nor keys of the site are here\n")
	case r.From == 0:
		p.Printf("  not proven: who asked, for all records are from before the site wanted proofs\n")
	default:
		if r.From > 1 {
			p.Printf("  records 1 to %s are from before the site wanted proofs\n", terminal.Count(r.From-1))
		}
		p.Printf("  who asked is proven from record %s on: %s signed, %s marked, %s forced by the rules\n", terminal.Count(r.From),
			terminal.Count(r.Requests), terminal.Count(r.Transfers), terminal.Count(r.Forced))
		if r.Unchecked > 0 {
			p.Printf("  not checked: the marks of %s transfers, for which the site's keys are needed (--keys)\n", terminal.Count(r.Unchecked))
		}
		if r.Clearing > 0 {
			p.Printf("  %s records settle with other sites, on %s that the banks of these sites signed\n", terminal.Count(r.Clearing), terminal.Plural(int(r.Peers), "statement"))
		}
		if r.Unheard > 0 {
			p.Printf("  not checked: what other sites signed for %s movements of earlier releases, which is not in the journal\n", terminal.Count(r.Unheard))
		}
	}
}
