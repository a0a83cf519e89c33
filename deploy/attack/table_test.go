package attack

import (
	"fmt"
	"io"
	"strings"
)

// attempt is the outcome of one attempt against the site.
type attempt struct {
	What    string // who tries what, in words
	Effect  string // what it brought about; "" if it was refused
	Refusal string // what refused it, as the attacker sees that
	// Needs is the least containment of tasks, of [messages.Containment], with which the
	// site states that the attempt is refused; 0: always.
	Needs int
}

// unprotected, as what an attempt needs, is more than any site has.
const unprotected = 5

// needsApart, as what an attempt needs, is namespaces, whatever else the site has.
const needsApart = -1

// report prints the table of attempts, and returns those that had an effect that the
// site does not own up to: its nodes say at the start, and in "candor nodes", what
// tasks reach where the machine does not let the site protect itself.
func report(w io.Writer, attempts []attempt, containment int) (effects []attempt) {
	for _, a := range attempts {
		outcome, why := "refused", a.Refusal
		switch {
		case a.Effect != "" && a.Needs > containment:
			outcome, why = "NOT PROTECTED HERE", a.Effect
		case a.Effect != "":
			outcome, why = "EFFECT", a.Effect
			effects = append(effects, a)
		}
		fmt.Fprintf(w, "%-19s %-60s %s\n", outcome, a.What, line(why))
	}
	return effects
}

// line is a text in one short line.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 110 {
		text = strings.ToValidUTF8(text[:110], "") + "…"
	}
	return text
}
