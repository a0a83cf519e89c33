package clienttest

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

// View is a command line, and a site that answers it.
type View struct {
	Line  string
	Serve func(*Site)
}

// Gives returns a function that makes a site answer every request of one kind with the same reply.
func Gives[Req, Rep any](actor, verb string, r Rep) func(*Site) {
	return func(s *Site) { Answer(s, actor, verb, func(Req) (Rep, error) { return r, nil }) }
}

// CheckViews compares the output of commands with golden files that have the names of the views.
func CheckViews(t *testing.T, newSite func(*testing.T) *Site, views map[string]View) {
	t.Helper()
	for name, v := range views {
		s := newSite(t)
		v.Serve(s)
		got := s.Run(strings.Fields(strings.ReplaceAll(v.Line, "$DIR", s.Dir))...)
		if got.Err != "" {
			t.Errorf("%s: %s", v.Line, got.Err)
		}
		Golden(t, name+".txt", got.Out)
		checkFits(t, s, strings.Fields(strings.ReplaceAll(v.Line, "$DIR", s.Dir)), got)
	}
}

// checkFits checks the output of a command on terminals of 80 and 200 columns. No line may be wider than the terminal.
// No text may be shortened if all texts fit, if there is no terminal, or if the user asks for everything.
func checkFits(t *testing.T, s *Site, line []string, full Result) {
	t.Helper()
	for _, s.Width = range []int{80, 200} {
		got := s.Run(line...).Out
		if widest(full.Out) <= s.Width && got != full.Out {
			t.Errorf("%v: a terminal of %d columns has room for all: %s", line, s.Width, Difference(got, full.Out))
		}
		for text := range strings.SplitSeq(got, "\n") {
			if n := terminal.Width(text); n > s.Width && strings.Contains(strings.TrimSpace(text), " ") {
				t.Errorf("%v: %d columns on a terminal of %d: %s", line, n, s.Width, text)
			}
		}
	}
	if got := s.Run(append(line, "-o", "wide")...); got.Code == full.Code && got.Out != full.Out {
		t.Errorf("%v -o wide: %s", line, Difference(got.Out, full.Out))
	}
	s.Width = 0
}

func widest(text string) (columns int) {
	for line := range strings.SplitSeq(text, "\n") {
		columns = max(columns, terminal.Width(line))
	}
	return columns
}
