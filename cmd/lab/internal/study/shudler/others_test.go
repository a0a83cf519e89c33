package shudler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
)

// parallel writes logs of 400 jobs of up to 8 processors, and returns their directory. The jobs arrive faster than
// their nodes can run them.
func parallel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for k, m := range others {
		r := rand.New(rand.NewPCG(1, uint64(k)))
		var log strings.Builder
		at := 0
		for i := range 400 {
			at += r.IntN(8)
			fmt.Fprintf(&log, "%d %d 0 %d %d -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n", i+1, at, int(1+200*r.ExpFloat64()), 1+r.IntN(8))
		}
		if err := os.WriteFile(filepath.Join(dir, m.file), []byte(log.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// To shade is to bid less than the true value. In every market with more work than slots, this raises the slowdown of
// low bids. The results of all logs of this study must show it.
func TestOthers(t *testing.T) {
	r := studytest.Run(t, Others, study.Options{Seed: 3, Quick: true, Traces: parallel(t)})
	for name, l := range r.Numbers.(map[string]*otherLog) {
		if l.Jobs < 1200 || len(l.Tables["kth"]["WSPT"].Designer) != len(betas) || len(l.Curves) != len(paperFigures) {
			t.Errorf("%s: %d jobs, tables %v", name, l.Jobs, l.Tables)
		}
	}
	if n := strings.Count(r.Page.String(), "Same: Shading raises the slowdown of low bids"); n != len(others) {
		t.Errorf("the page says %d times that shading raises the slowdown", n)
	}
}

func TestOthersNameTheMissingLog(t *testing.T) {
	if _, err := Others.Run(study.Options{Seed: 1, Traces: t.TempDir()}); err == nil || !strings.Contains(err.Error(), others[0].file) {
		t.Errorf("%v", err)
	}
}
