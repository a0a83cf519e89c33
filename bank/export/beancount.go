package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// beancount writes a journal for beancount.
type beancount struct{ *output }

func newBeancount(o *output, site messages.Name) *beancount {
	o.printf("; The books of the bank of site %s.\n\noption \"title\" %s\noption \"operating_currency\" \"CREDIT\"\n", site, quoted("Bank of site "+site))
	return &beancount{o}
}

func beancountAccount(name messages.Name, held bool) string {
	root, part := "Assets:", ":Available"
	if held {
		part = ":Held"
	}
	if name == messages.IssuerAccount {
		root = "Equity:"
	}
	if own, is := strings.CutPrefix(name, "$"); is {
		root, name = root+"Bank:", own
	}
	return root + component(name) + part
}

// component makes a name a component of an account; see the package's doc.
func component(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case i == 0 && 'a' <= c && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "X%02x", c)
		}
	}
	return b.String()
}

func (b *beancount) Line(l *ledger.Line) error {
	if !l.Moves() {
		b.printf("\n; %s %s\n", l.At, printable(l.Note))
		return nil
	}
	for _, name := range b.note(l) {
		for _, held := range []bool{false, true} {
			b.printf("\n%s open %s CREDIT", day(l.At), beancountAccount(name, held))
		}
		b.printf("\n")
	}
	b.printf("\n%s * %s\n", day(l.At), quoted(words(l)))
	for _, t := range tags(l) {
		b.printf("  %s: %s\n", key(t.name), quoted(t.value))
	}
	for _, p := range postings(l) {
		b.printf("  %-40s  %s CREDIT\n", beancountAccount(p.account, p.held), decimal(p.change))
	}
	return nil
}

// Close asserts what every account came to.
func (b *beancount) Close() error {
	after := day(b.last + messages.Time(24*time.Hour/time.Microsecond))
	b.printf("\n")
	for _, name := range slices.Sorted(maps.Keys(b.standings)) {
		s := b.standings[name]
		b.printf("%s balance %-40s  %s ~ 0.000000 CREDIT\n", after, beancountAccount(name, false), decimal(s.Balance-s.Reserved))
		b.printf("%s balance %-40s  %s ~ 0.000000 CREDIT\n", after, beancountAccount(name, true), decimal(s.Reserved))
	}
	return b.flush()
}

// key makes the name of a tag one of beancount; see the package's doc.
func key(name string) string { return strings.NewReplacer("X", "X58", ".", "X2e").Replace(name) }

// quoted is a string as beancount reads it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
