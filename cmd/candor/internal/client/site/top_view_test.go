package site

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// crowded returns an overview with more bidders than a screen has rows.
func crowded() *overview {
	m := market.MarketStatus{Market: market.Market{Name: "main", Classes: []messages.Name{"cpu"}}}
	for i := range 40 {
		m.Top = append(m.Top, market.JobShare{Job: messages.JobID(i + 1), Account: "alice", Budget: messages.Credits(i) * messages.Credit})
	}
	return &overview{Site: "west", Markets: []market.MarketStatus{m, m}}
}

func TestTopShowsTheEndAndTheLargestBudget(t *testing.T) {
	v := topView{look: look{overview: crowded()}}
	p := func() *cli.Page { return &cli.Page{Zone: time.UTC, Columns: 80} }
	v.press('s', 12)
	if got := v.frame(p(), 12); !strings.Contains(got, "  40") || !strings.Contains(got, "sorts (budget)") {
		t.Errorf("sorted by budget:\n%s", got)
	}
	v.press('r', 12)
	v.press(terminal.End, 12)
	if got := v.frame(p(), 12); !strings.Contains(got, "  40  ") || strings.Contains(got, "   1  alice") {
		t.Errorf("the end, turned round:\n%s", got)
	}
}

// On a terminal of any size, with any keys, the frame must fit the terminal.
func FuzzTop(f *testing.F) {
	f.Add([]byte("\x1b[B\x1b[6~sGrS"), 24, 0)
	f.Add([]byte("jjjj\x1b[A\x1b\x1b[9999999999999999999999999999999999999999~"), 1, 1)
	f.Add([]byte("\xff\x00é\x1bO"), 3, 2)
	f.Fuzz(func(t *testing.T, typed []byte, rows, state int) {
		rows = max(1, min(rows, 500))
		v := topView{}
		switch state % 3 {
		case 1:
			v.look = look{overview: crowded()}
		case 2:
			v.look = look{err: errors.New("silent")}
		}
		var keys terminal.Keys
		for _, key := range append(keys.Feed(typed), keys.Flush()...) {
			if v.press(key, rows) {
				break
			}
			frame := v.frame(&cli.Page{Zone: time.UTC, Columns: 80}, rows)
			if n := strings.Count(frame, "\n"); n > max(rows, around+1) {
				t.Fatalf("%d lines on %d rows", n, rows)
			}
		}
	})
}
