package runbook

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rotatePeer rotates the key of a bank as the runbook says, at the site and at its peer. The site must continue to pay,
// and the peer must never trust the old key again.
func rotatePeer(o *operator) {
	key := func() string {
		_, after, _ := strings.Cut(o.until("--state east/state peer list", "Key, for peers"), "Key, for peers ")
		return strings.Fields(after)[0]
	}
	old := key()
	next := strings.TrimSpace(o.do("site rotate bank --config east/site.yaml"))
	o.do("--state west/state peer key east "+next, "Site east is a peer")
	o.do("site rotate bank --finish --config east/site.yaml", "has ended")
	o.until("--state east/state peer list", "Key, for peers "+next)
	o.do("--state east/state grant operator 8 --yes", "8 credits")
	o.do("--state east/state --account operator remit alice@west 8", "The bank has set aside 8 credits for alice at west")
	o.until("--state west/state --account operator account alice", "Balance 10 credits")
	o.do("--state west/state peer key east "+next+" --now", "Site east is a peer")
	o.until("--state west/state peer add east --limit 4000 --key "+old+" --key "+next, "was retired and can never be trusted again")
	o.do("--state west/state peer limit east 4001", "may owe up to 4001 credits")
	o.until("--state west/state peer reconcile east", "the books agree")
}

// partAlone ends the relation with a peer without the peer's agreement. The peer owes eight credits, which are lost.
// The exported books must show this loss. If the accounting program hledger is installed, it must find that they
// balance.
func partAlone(o *operator) {
	o.until("--state west/state peer part east --loss 7 --reason gone", "owes 8: state this amount")
	o.do("--state west/state peer part east --loss 8 --reason gone", "This site has parted from east", "Written off", "8 credits")
	o.until("--state west/state peer list", "parted")
	o.do("--state west/state bank verify", "The books verify")
	books := o.do("--state west/state bank export --format hledger", "reason:parted from site east%3A gone")
	program, err := exec.LookPath("hledger")
	if err != nil {
		o.Log("hledger is not here: its check is left out")
		return
	}
	file := filepath.Join(o.dir, "west.journal")
	if err := os.WriteFile(file, []byte(books), 0o600); err != nil {
		o.Fatal(err)
	}
	for arguments, want := range map[string]string{"check --strict": "", "balance assets:operator": "84", "balance assets:clearing-": "", "register assets:operator tag:reason=parted": "-8"} {
		out, err := exec.CommandContext(o.Context(), program, append([]string{"-f", file}, strings.Fields(arguments)...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			o.Errorf("hledger %s: %v\n%s", arguments, err, out)
		}
	}
}

// partByAgreement ends the trade between the two sites: both operators part, when all debts are paid.
func partByAgreement(o *operator) {
	o.do("peer part east", "This site is parting from east")
	o.do("--at east peer part west", "from west")
	for _, at := range []string{"", "--at east "} {
		o.until(at+"peer list --json", `"standing":"parted"`)
	}
	o.until("remit alice@east 1", "parted")
}
