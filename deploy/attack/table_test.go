package attack

import (
	"fmt"
	"io"
	"strings"
)

// attempt is one attempt against the site, with its result.
type attempt struct {
	What    string // who tries what, in words
	Effect  string // its effect; "" if it was refused
	Refusal string // what refused the attempt, as the attacker saw it
	// Needs is the lowest level of containment ([agent.Containment]) at which the site promises to refuse the attempt.
	// 0 means every level.
	Needs int
}

// unprotected is a value of Needs for attempts that no site promises to refuse. It is above the highest level of
// containment.
const unprotected = 5

// needsApart is a value of Needs. The site promises to refuse an attempt with this value whenever tasks have
// namespaces. It does not matter how strong the containment is.
const needsApart = -1

// report prints the table of attempts. It returns the attempts that had an effect although the site promises to refuse
// them at this level of containment.
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

func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 110 {
		text = strings.ToValidUTF8(text[:110], "") + "…"
	}
	return text
}
