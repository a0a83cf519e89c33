package attack

import (
	"fmt"
	"io"
	"strings"
)

// attempt is one attempt against the site, with its result.
type attempt struct {
	What    string // who tries what, in words
	Effect  string // what it brought about; "" if it was refused
	Refusal string // what refused it, as the attacker saw it
	// Needs is the least containment of tasks, of [agent.Containment], with which the site promises that the
	// attempt is refused; 0: always.
	Needs int
}

// unprotected is a value of Needs for attempts that succeed on every site: no site has so much containment.
const unprotected = 5

// needsApart, as a value of Needs, means namespaces, whatever else the site has.
const needsApart = -1

// report prints the table of attempts. It returns the attempts that had an effect, unless the site admits this effect.
// If the machine does not let the site protect itself, its nodes say at the start and in "candor nodes" what tasks can
// reach.
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

// line shortens a text to one line.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 110 {
		text = strings.ToValidUTF8(text[:110], "") + "…"
	}
	return text
}
