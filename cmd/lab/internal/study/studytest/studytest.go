// Package studytest runs studies in tests.
package studytest

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

// Run runs a study, and writes its report.
func Run(t testing.TB, s study.Study, o study.Options) *study.Report {
	t.Helper()
	r, err := s.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(t.TempDir(), s.Name); err != nil {
		t.Fatal(err)
	}
	return r
}

// Quick runs the small version of a study.
func Quick(t testing.TB, s study.Study, seed uint64) *study.Report {
	t.Helper()
	return Run(t, s, study.Options{Seed: seed, Quick: true})
}

// Same checks that the page of a report confirms some sentences of the paper. The arguments are the beginnings of these
// sentences.
func Same(t testing.TB, r *study.Report, sentences ...string) {
	t.Helper()
	for _, sentence := range sentences {
		if !strings.Contains(r.Page.String(), "Same: "+sentence) {
			t.Errorf("the page does not say %q", "Same: "+sentence)
		}
	}
}
