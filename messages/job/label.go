package job

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// Limits on the labels and the comment of a job.
const (
	MaxLabels  = 16
	MaxLabel   = 63   // bytes of a label's name, and of its value
	MaxLabeled = 192  // bytes of all labels of a job as text, because the reason of the job's charge contains them
	MaxComment = 1024 // bytes of a comment
)

// Labels are names with values with which users find jobs again, for example run=7. They are sorted by name; in JSON
// they are an object. They do not change how a job runs.
type Labels []Label

// Label is a pair of a name and a value.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

var labelsForm = wire.Object[Label, string]{
	Pair: func(l Label) (string, string) { return l.Name, l.Value },
	Make: func(name, value string) Label { return Label{name, value} },
	What: "label", Wrong: "label %q: must be a string",
}

// MarshalJSON writes an object.
func (l Labels) MarshalJSON() ([]byte, error) { return labelsForm.WriteJSON(l) }

// UnmarshalJSON reads an object.
func (l *Labels) UnmarshalJSON(b []byte) (err error) {
	*l, err = labelsForm.ReadJSON(b)
	return err
}

// UnmarshalYAML reads a mapping.
func (l *Labels) UnmarshalYAML(decode func(any) error) (err error) {
	*l, err = labelsForm.ReadYAML(decode)
	return err
}

// MarshalYAML writes a mapping.
func (l Labels) MarshalYAML() (any, error) { return labelsForm.Mapping(l), nil }

// Get returns the value of a label, and whether there is one.
func (l Labels) Get(name string) (string, bool) {
	i, found := slices.BinarySearchFunc(l, name, func(l Label, name string) int { return cmp.Compare(l.Name, name) })
	if !found {
		return "", false
	}
	return l[i].Value, true
}

// Set returns the labels with one label added or changed.
func (l Labels) Set(name, value string) Labels {
	i, found := slices.BinarySearchFunc(l, name, func(l Label, name string) int { return cmp.Compare(l.Name, name) })
	if found {
		l[i].Value = value
		return l
	}
	return slices.Insert(l, i, Label{name, value})
}

// String writes each label as name=value, with commas between the labels. ParseLabels reads this form.
func (l Labels) String() string {
	text := make([]string, len(l))
	for i := range l {
		text[i] = l[i].Name + "=" + l[i].Value
	}
	return strings.Join(text, ",")
}

func (l Labels) validate(path string) error {
	if len(l) > MaxLabels {
		return messages.Errorf(messages.TooLarge, "%s: %d is above the limit of %d", path, len(l), MaxLabels)
	}
	if err := labelsForm.Ordered(l); err != nil {
		return messages.Errorf(messages.Invalid, "%s: %s", path, messages.Detail(err))
	}
	for _, one := range l {
		if err := CheckLabel(one.Name, one.Value); err != nil {
			return messages.Errorf(messages.Invalid, "%s: %s", path, messages.Detail(err))
		}
	}
	if text := l.String(); len(text) > MaxLabeled {
		return messages.Errorf(messages.TooLarge, "%s: are %d bytes in all, written as name=value,…, more than the limit of %d", path, len(text), MaxLabeled)
	}
	return nil
}

// labelsMark separates a reason from the labels that follow it.
const labelsMark = "; labels "

// Labelled returns the reason of a job's charge followed by the job's labels. If the text would be longer than `most`
// bytes, the end of the reason is cut. Labels are never cut.
func (l Labels) Labelled(reason string, most int) string {
	if len(l) == 0 {
		return messages.Clip(reason, most)
	}
	mark := labelsMark + l.String()
	return messages.Clip(reason, most-len(mark)) + mark
}

// LabelsOf returns the labels in a reason that the function Labelled made. It returns none if the reason has no labels.
func LabelsOf(reason string) (l Labels) {
	at := strings.LastIndex(reason, labelsMark)
	if at < 0 {
		return nil
	}
	for _, one := range strings.Split(reason[at+len(labelsMark):], ",") {
		name, value, given := strings.Cut(one, "=")
		if !given || CheckLabel(name, value) != nil || len(l) == MaxLabels {
			return nil
		}
		l = l.Set(name, value)
	}
	return l
}

// CheckLabel returns an error for a label that breaks the rules of Kubernetes for labels. A value may be empty.
func CheckLabel(name, value string) error {
	const rule = "use at most 63 letters, digits, '-', '_' or '.', with a letter or digit first and last"
	if name == "" || !labelText(name) {
		return messages.Errorf(messages.Invalid, "%q is not the name of a label; %s", messages.Clipped(name), rule)
	}
	if !labelText(value) {
		return messages.Errorf(messages.Invalid, "%s: %q is not the value of a label; %s", name, messages.Clipped(value), rule)
	}
	return nil
}

// LabelSelector names a label that a job must have, with any value or with one value.
type LabelSelector struct {
	Name, Value string
	Any         bool
}

// ParseLabelSelector reads NAME, or NAME=VALUE.
func ParseLabelSelector(text string) (LabelSelector, error) {
	name, value, given := strings.Cut(text, "=")
	return LabelSelector{name, value, !given}, CheckLabel(name, value)
}

// Fit reports whether the labels match all selectors.
func (l Labels) Fit(selectors []LabelSelector) bool {
	for _, want := range selectors {
		if value, has := l.Get(want.Name); !has || !want.Any && value != want.Value {
			return false
		}
	}
	return true
}

func labelText(s string) bool {
	for i := range len(s) {
		c := s[i]
		plain := alphanumeric(c)
		inside := i > 0 && i < len(s)-1 && (c == '-' || c == '_' || c == '.')
		if !plain && !inside {
			return false
		}
	}
	return len(s) <= MaxLabel
}

// AllOthers is a key in a table. Its value is for all names that the table does not list.
const AllOthers = "*"

// Lookup returns the value for a name in the table. The result `listed` is true if the table has the name itself, and
// not only [AllOthers].
func (l Labels) Lookup(name string) (value string, listed, ok bool) {
	if value, ok = l.Get(name); ok {
		return value, true, true
	}
	value, ok = l.Get(AllOthers)
	return value, false, ok
}
