package notify

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Word is a notification, as its receiver gets it.
type Word struct {
	ID    string        `json:"id"` // identifies the notification; a repeated one has the same ID
	Site  messages.Name `json:"site"`
	Event string        `json:"event"`
	At    messages.Time `json:"at"`
	job.JobSummary
}

// title says in one line what happened to the job.
func (w *Word) title() string {
	name := w.Job.String()
	if w.Name != "" {
		name += " (" + line(w.Name, 60) + ")"
	}
	if w.Event == job.NotifyStart {
		return fmt.Sprintf("job %s on %s has started", name, w.Site)
	}
	if w.Event == job.NotifyBudget {
		return fmt.Sprintf("job %s on %s: its budget is about to end", name, w.Site)
	}
	return fmt.Sprintf("job %s on %s: %v", name, w.Site, w.State)
}

func (w *Word) text() string {
	var b strings.Builder
	field := func(name string, value any) { fmt.Fprintf(&b, "%-10s %v\n", name, value) }
	field("Job", w.Job)
	field("Name", line(w.Name, 200))
	field("State", w.State)
	switch w.Event {
	case job.NotifyStart:
	case job.NotifyBudget:
		field("Budget", w.Budget.Words())
		field("Tasks", fmt.Sprintf("%d of %d done", w.Done, w.Tasks))
	default:
		field("Reason", w.Reason)
		if w.State == job.Failed && w.ExitCode >= 0 {
			field("Exit code", w.ExitCode)
		}
		field("Tasks", fmt.Sprintf("%d of %d done", w.Done, w.Tasks))
		field("Charged", fmt.Sprintf("%v of %s", w.Charged, w.Budget.Words()))
	}
	field("Account", w.Account)
	field("Market", w.Market)
	if len(w.Labels) > 0 {
		field("Labels", w.Labels)
	}
	field("Submitted", w.Submitted)
	if w.Started != 0 {
		field("Started", w.Started)
	}
	if w.Ended != 0 {
		field("Ended", w.Ended)
	}
	if w.Event == job.NotifyBudget {
		fmt.Fprintf(&b, "\nThe job ends when its slots have cost its whole budget. To let it go on: candor change %v --budget CREDITS\n", w.Job)
	}
	fmt.Fprintf(&b, "\nTo see more: candor job %v\n", w.Job)
	return b.String()
}

// line returns a user's text as one line of at most `most` bytes.
func line(text string, most int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, messages.Clip(text, most))
}
