package terminal

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// wideTable returns a table that needs more than 80 columns.
func wideTable() *Table {
	t := NewTable(">JOB|~NAME|STATE|SUBMITTED|>BUDGET|~REASON").Spare("SUBMITTED|BUDGET")
	t.Row("1", "a name that is longer than most", "Waiting", "2026-03-01 12:00:00", "12.5", "other jobs have a larger share")
	t.Row("23", "日本語の名前", "Running", "2026-03-01 12:00:00", "1", "")
	return t
}

func written(t *Table, l Layout) string {
	var b bytes.Buffer
	t.WriteAs(&b, Style{}, "  ", l)
	return b.String()
}

func TestANarrowTerminalShowsWhatMattersMost(t *testing.T) {
	for width, titles := range map[int]string{
		0: "JOB NAME STATE SUBMITTED BUDGET REASON", 200: "JOB NAME STATE SUBMITTED BUDGET REASON",
		78: "JOB NAME STATE SUBMITTED BUDGET REASON", 60: "JOB NAME STATE BUDGET REASON", 45: "JOB NAME STATE REASON",
	} {
		got := written(wideTable(), Layout{Width: width})
		if head, _, _ := strings.Cut(got, "\n"); strings.Join(strings.Fields(head), " ") != titles {
			t.Errorf("width %d, want %s:\n%s", width, titles, got)
		}
		if cut := strings.Contains(got, "…"); cut != (width > 0 && width < 200) {
			t.Errorf("width %d:\n%s", width, got)
		}
	}
}

func TestNamedColumnsAreAllShownInTheirOrder(t *testing.T) {
	got := written(wideTable(), Layout{Width: 24, Columns: []string{"budget", "Job", "nothing"}})
	if want := "  BUDGET  JOB\n    12.5    1\n       1   23\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := written(wideTable(), Layout{Names: true}); got != "1\n23\n" {
		t.Errorf("names: %q", got)
	}
}

func TestNoTableIsWiderThanTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable("~A|B|>C|~D").Spare("C|B")
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			var cells []string
			for range 4 {
				cells = append(cells, Safe(rapid.StringN(0, 60, -1).Draw(t, "cell")))
			}
			table.Row(cells...)
		}
		width := rapid.IntRange(1, 120).Draw(t, "width")
		for line := range strings.SplitSeq(written(table, Layout{Width: width}), "\n") {
			if Width(line) > width {
				t.Fatalf("%d columns, want at most %d: %q", Width(line), width, line)
			}
		}
	})
}

// The marks in a header say how much of a shortened cell must stay, and whether its beginning or its end stays.
func TestColumnsAreShortenedAsTheySay(t *testing.T) {
	table := NewTable("<TASK|STATE|~16WHY").Spare("STATE")
	table.Row("a-stage-with-a-long-name.17", "Failed", "ended by its time limit of 3 seconds")
	for width, want := range map[int]string{
		38: "  …g-name.17  Failed  ended by its time…", 33: "  …th-a-long-name.17  ended by its …", 34: "  …ng-name.17  Failed  ended by its …",
	} {
		if got := strings.Split(written(table, Layout{Width: width + 2}), "\n")[1]; Width(got) > width+2 || !strings.HasPrefix(got, "  …") || !strings.Contains(got, "name.17") || !strings.Contains(got, "ended by its") {
			t.Errorf("width %d: got\n%s\nwant\n%s", width, got, want)
		}
	}
}

func TestWrapBreaksBetweenWords(t *testing.T) {
	if got, want := Wrap("short\n  - a sentence of seven words here", 16), "short\n  - a sentence\n    of seven\n    words here"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Wrap("averylongwordthatstayswhole and", 10); got != "averylongwordthatstayswhole\nand" {
		t.Errorf("got %q", got)
	}
}
