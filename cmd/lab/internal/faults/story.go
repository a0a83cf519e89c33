package faults

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are the limits of a story: its lines, and the characters in a line.
const (
	mostLines = 40
	mostWidth = 200
)

type story struct{ moments []moment }

type moment struct {
	at       messages.Time
	site     messages.Name   // site where it happened; "" means everywhere
	what     string          // one line of text
	subjects map[string]bool // accounts, nodes, identifiers and jobs ("job 3") that it is about; nil means all
}

// Tell runs a seed again and returns the events that led to its violation: the faults, the changes of leaders, and the
// entries about the jobs, accounts, nodes and identifiers in the text of the violation. Without a violation, it returns
// nil.
func Tell(p *Plan, seed uint64, bug Bug) []string {
	s := &story{}
	o := run(p, p.draw(seed), seed, bug, s)
	if o.Violation == nil {
		return nil
	}
	return s.about(o.Violation.Error(), o.Span)
}

// note adds an event to the story, which is the record of a run. Without a story it does nothing. The function `brief`
// turns the values into text.
func (w *World) note(site messages.Name, always bool, values ...any) {
	if w.story == nil {
		return
	}
	m := moment{at: w.now, site: site, subjects: map[string]bool{}}
	var text []string
	for _, v := range values {
		if written := brief(reflect.ValueOf(v), m.subjects); written != "" {
			text = append(text, written)
		}
	}
	if m.what = strings.Join(text, " "); always {
		m.subjects = nil
	}
	w.story.moments = append(w.story.moments, m)
}

func (g *group) committed(data []byte, result any) {
	if g.story == nil || data == nil {
		return
	}
	c, always := g.asked[string(data)], false
	if g == g.books {
		command, err := book.Decode(data)
		if err != nil {
			return
		}
		c, always = command, command.Lost != nil || command.Register != nil
	}
	if c != nil {
		g.note(g.site.name, always, g.name+":", c, "→", result)
	}
}

var (
	jobsNamed  = regexp.MustCompile(`(?:jobs?|task|and) (\d+)`)
	wordsNamed = regexp.MustCompile(`[\w$][\w$./-]*[\w]`)
	// untold lists fields that the story (the record of a run) leaves out, because they mean nothing to a reader.
	untold = []string{"Session", "Rules", "Margin", "Known", "Total", "Digest", "Signature"}
)

// The function named returns the names in the text of a violation. These are jobs (as "job 3"), accounts, nodes and
// identifiers.
func named(violation string) map[string]bool {
	subjects := map[string]bool{}
	for _, m := range jobsNamed.FindAllStringSubmatch(violation, -1) {
		subjects["job "+m[1]] = true
	}
	for _, word := range wordsNamed.FindAllString(violation, -1) {
		if !slices.Contains(siteNames, word) {
			subjects[word] = true
		}
	}
	return subjects
}

// shares reports whether a moment is about at least one of the subjects.
func (m *moment) shares(subjects map[string]bool) bool {
	for s := range m.subjects {
		if subjects[s] {
			return true
		}
	}
	return false
}

// about returns the lines of a story: the last events about the names in the violation, or about the violation's site.
// The violation comes at the end.
func (s *story) about(violation string, at messages.Duration) []string {
	here := slices.DeleteFunc(slices.Clone(siteNames), func(n messages.Name) bool { return !strings.Contains(violation, n) })
	there := slices.DeleteFunc(slices.Clone(s.moments), func(m moment) bool {
		return m.site != "" && len(here) > 0 && !slices.Contains(here, m.site)
	})
	subjects, found := named(violation), false
	for _, m := range there {
		if m.shares(subjects) {
			found = true
			for s := range m.subjects { // the identifiers of the job's hold and of its authorisation
				subjects[s] = subjects[s] || strings.Contains(s, "/")
			}
		}
	}
	var lines []string
	for _, m := range there {
		if !found || m.subjects == nil || m.shares(subjects) {
			lines = append(lines, line(m.at.Sub(epoch), m.site, m.what))
		}
	}
	if more := len(lines) - mostLines; more > 0 {
		lines = append([]string{fmt.Sprintf("%d earlier lines are left out", more)}, lines[more:]...)
	}
	return append(lines, line(at, "", "VIOLATED: "+violation))
}

func line(at messages.Duration, site messages.Name, what string) string {
	if runes := []rune(what); len(runes) > mostWidth {
		what = string(runes[:mostWidth]) + "…"
	}
	return fmt.Sprintf("%8.3fs %-6s%s", at.Seconds(), site, what)
}

// brief writes a value on one line. It leaves out empty fields, times and byte strings. It adds the names of accounts,
// jobs and the like that it finds in the value to the map `subjects`.
func brief(v reflect.Value, subjects map[string]bool) string {
	if !v.IsValid() || v.IsZero() {
		return ""
	}
	switch x := v.Interface().(type) {
	case messages.Time, []byte, *job.JobSpec:
		return ""
	case messages.JobID:
		subjects["job "+x.String()] = true
		return x.String()
	case messages.TaskRef:
		subjects["job "+x.Job.String()] = true
		return x.String()
	case messages.Attempt:
		return brief(reflect.ValueOf(x.Task), subjects) + fmt.Sprint("#", x.Number)
	case string:
		subjects[x] = true
		return x
	case error:
		return "refused: " + x.Error()
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return brief(v.Elem(), subjects)
	case reflect.Struct:
		return briefFields(v, subjects)
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, brief(v.Index(i), subjects))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v.Interface())
}

func briefFields(v reflect.Value, subjects map[string]bool) string {
	var parts []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || slices.Contains(untold, f.Name) {
			continue
		}
		name, text := strings.ToLower(f.Name), brief(v.Field(i), subjects)
		if text != "" && !strings.HasPrefix(text, name+" ") {
			text = name + " " + text
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}
