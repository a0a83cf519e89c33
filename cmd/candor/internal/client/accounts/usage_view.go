package accounts

import (
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

func hours(h float64, places int) string { return strconv.FormatFloat(h, 'f', places, 64) }

func writeUsage(p *cli.Page, r *usageReport) {
	whose := "all accounts"
	if r.Account != "" {
		whose = "account " + r.Account
	}
	p.Printf("%s  jobs that ended from %s to %s\n", p.Bold("Usage of "+whose), p.At(r.From), p.At(r.To))
	if len(r.Rows) == 0 {
		p.Printf("  No jobs.\n")
	} else {
		t := terminal.NewTable("~" + strings.ToUpper(strings.Join(r.By, "|~")) + "|>JOBS|>COMPLETED|>FAILED|>CANCELLED|>DISCARDED|>SLOT-HOURS|>CPU-HOURS|>GPU-HOURS|>GIB-HOURS|>CREDITS").Spare("DISCARDED|CANCELLED|FAILED|COMPLETED")
		for i := range r.Rows {
			t.Row(append(safeKeys(r.Rows[i].Keys), r.Rows[i].cells(2)...)...)
		}
		if len(r.Rows) > 1 {
			keys := make([]string, len(r.By))
			keys[0] = "all"
			t.Row(append(keys, r.All.cells(2)...)...)
		}
		p.Table(t, "  ")
	}
	if r.Complete > r.From {
		p.Printf("Jobs that ended before %s may be missing: the site does not keep records for so long.\n", p.At(r.Complete))
	}
	if r.Unreadable > 0 {
		p.Printf("Not counted: %s that could not be read.\n", terminal.Plural(r.Unreadable, "record"))
	}
}

func safeKeys(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		if out[i] = terminal.Safe(k); k == "" {
			out[i] = "-"
		}
	}
	return out
}

func (r *usageRow) cells(places int) []string {
	return []string{strconv.Itoa(r.Jobs), strconv.Itoa(r.Completed), strconv.Itoa(r.Failed), strconv.Itoa(r.Cancelled), strconv.Itoa(r.Discarded),
		hours(r.SlotHours, places), hours(r.CPUHours, places), hours(r.GPUHours, places), hours(r.GiBHours, places), r.Charged.String()}
}

func usageCSV(a *cli.App, r *usageReport) error {
	w := csv.NewWriter(a.Out)
	rows := [][]string{append(append([]string{}, r.By...), "jobs", "completed", "failed", "cancelled", "discarded", "slot_hours", "cpu_hours", "gpu_hours", "memory_gib_hours", "credits")}
	for i := range r.Rows {
		rows = append(rows, append(append([]string{}, r.Rows[i].Keys...), r.Rows[i].cells(6)...))
	}
	return w.WriteAll(rows)
}
