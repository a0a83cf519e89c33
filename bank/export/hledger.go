package export

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// hledger writes a journal for hledger; ledger-cli reads it too.
type hledger struct{ *output }

func newHledger(o *output, site messages.Name) *hledger {
	o.printf("; The books of the bank of site %s.\n; Each posting asserts the balance that the bank recorded.\n\n", site)
	o.printf("decimal-mark .\ncommodity 1000.000000 CREDIT\n")
	return &hledger{o}
}

func hledgerAccount(name messages.Name, held bool) string {
	root, part := "assets", "available"
	if name == money.IssuerAccount {
		root = "equity"
	}
	if held {
		part = "held"
	}
	return root + ":" + name + ":" + part
}

func (h *hledger) Line(l *ledger.Line) error {
	if !l.Moves() {
		h.printf("\n; %s %s\n", l.At, printable(l.Note))
		return nil
	}
	for _, name := range h.fresh(l) {
		h.printf("\naccount %s\naccount %s\n", hledgerAccount(name, false), hledgerAccount(name, true))
	}
	h.printf("\n%s * %s\n", day(l.At), words(l))
	for _, t := range tags(l) {
		h.printf("    ; %s:%s\n", t.name, percent(t.value))
	}
	for _, p := range postings(l) {
		h.printf("    %-40s  %s CREDIT = %s CREDIT\n", hledgerAccount(p.account, p.held), decimal(p.change), decimal(p.after))
	}
	return nil
}

func (h *hledger) Close() error { return h.flush() }

// printable returns a comment as one line.
func printable(s string) string { return strings.Join(strings.Fields(s), " ") }

// percent encodes the characters that end a tag's value or have a meaning in it.
func percent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		edge := (i == 0 || i == len(s)-1) && c == ' '
		if c < ' ' || c > '~' || edge || strings.IndexByte(",:;%[]", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
