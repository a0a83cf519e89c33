package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

// findings returns at most four sentences, one for each of four results. The sentences tell the user what the jobs of
// the demo have found out. The map `results` has the text of each result by the name of its file. If a result is
// missing in the map, its sentence is left out.
func findings(results map[string]string) []string {
	var out []string
	for _, find := range []func(map[string]string) string{mostHours, busiestHour, waitsByWidth, predictions} {
		if sentence := find(results); sentence != "" {
			out = append(out, sentence)
		}
	}
	return out
}

// table returns the rows of a result that contain only numbers. The header contains words, so it is left out.
func table(result string) [][]int64 {
	var rows [][]int64
	for line := range strings.Lines(result) {
		var row []int64
		for _, field := range strings.Fields(line) {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				row = nil
				break
			}
			row = append(row, n)
		}
		if row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// column returns a function that returns the number in column c of a row.
func column(c int) func([]int64) int64 { return func(row []int64) int64 { return row[c] } }

// largest returns the row with the largest value, or nil.
func largest(rows [][]int64, value func([]int64) int64) []int64 {
	if len(rows) == 0 {
		return nil
	}
	return slices.MaxFunc(rows, func(a, b []int64) int { return int(value(a) - value(b)) })
}

func mostHours(results map[string]string) string {
	rows := table(results["users-1-128.txt"])
	top := largest(rows, column(2))
	if top == nil {
		return ""
	}
	var all int64
	for _, row := range rows {
		all += row[2]
	}
	return fmt.Sprintf("%d users ran %s processor-hours; one of them %s of it.",
		len(rows), terminal.Count(all), terminal.Percent(float64(top[2])/float64(all)))
}

func busiestHour(results map[string]string) string {
	top := largest(table(results["hours-1-128.txt"]), column(1))
	if top == nil {
		return ""
	}
	return fmt.Sprintf("Most jobs came between %d:00 and %d:00: %s of them; half of these waited longer than %s.",
		top[0], top[0]+1, terminal.Count(top[1]), seconds(top[3]))
}

func waitsByWidth(results map[string]string) string {
	rows := table(results["waits-1-128.txt"])
	if len(rows) < 2 {
		return ""
	}
	first, last := rows[0], rows[len(rows)-1]
	return fmt.Sprintf("A job of one processor waited %s in the median, one of %d to %d processors %s.",
		seconds(first[3]), last[0]/2+1, last[0], seconds(last[3]))
}

func predictions(results map[string]string) string {
	var jobs, better int64
	rows := table(results["predict-1-128.txt"])
	for _, row := range rows {
		jobs++
		if row[3] > row[2] {
			better++
		}
	}
	if jobs == 0 {
		return ""
	}
	return fmt.Sprintf("For %d of the %d busiest users the last two runtimes predicted the next runtime better than the request did.",
		better, jobs)
}

func seconds(n int64) string { return terminal.Span(time.Duration(n) * time.Second) }
