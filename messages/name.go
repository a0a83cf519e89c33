package messages

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Name identifies an account, project, node, market, class, stage or site. Names of users, nodes, stages and sites must
// satisfy [ValidName]. Names of markets, classes and projects must satisfy [ValidFreeName].
type Name = string

// ValidName reports whether s is one subject token: a lower-case letter, then at most 62
// lower-case letters, digits, '-' or '_'.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// ValidFreeName reports whether s begins with a letter or a digit, and continues with at most 62 characters: letters,
// digits, '.', '-' or '_'. Upper and lower case count as different. In a subject, such a name is written in the form of
// [token].
func ValidFreeName(s string) bool {
	if len(s) == 0 || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		plain := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return true
}

// token returns a name in the form for a NATS subject, which cannot contain dots: it replaces each dot by "=", which no
// name contains.
func token(name Name) string { return strings.ReplaceAll(name, ".", "=") }

// JobID numbers the jobs of a site from 1.
type JobID uint64

// String writes the number.
func (id JobID) String() string { return strconv.FormatUint(uint64(id), 10) }

// TaskRef names a task: its job, the position of its stage in the job, and
// its position in the stage.
type TaskRef struct {
	Job   JobID  `json:"job"`
	Stage uint32 `json:"stage"`
	Index uint32 `json:"index"`
}

// Compare orders tasks by the age of the job, then by stage and index.
func (r TaskRef) Compare(o TaskRef) int {
	return cmp.Or(cmp.Compare(r.Job, o.Job), cmp.Compare(r.Stage, o.Stage), cmp.Compare(r.Index, o.Index))
}

// String writes "job.stage.index".
func (r TaskRef) String() string {
	return r.Job.String() + "." + strconv.Itoa(int(r.Stage)) + "." + strconv.Itoa(int(r.Index))
}

// Attempt names one attempt of a task. The attempts of a task are numbered from 1. A message about an attempt is
// refused if the task has a later attempt.
type Attempt struct {
	Task   TaskRef `json:"task"`
	Number uint32  `json:"number"`
}

// Compare orders attempts by their tasks, then by number.
func (a Attempt) Compare(o Attempt) int {
	return cmp.Or(a.Task.Compare(o.Task), cmp.Compare(a.Number, o.Number))
}

// NameOf returns the name of a member of an enumeration, or the argument `unknown`.
func NameOf[E ~uint8](names []string, member E, unknown string) string {
	if int(member) < len(names) {
		return names[member]
	}
	return unknown
}

// ReadName reads the name of a member of an enumeration. The argument `what` names the enumeration in the error.
func ReadName[E ~uint8](into *E, what string, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return Errorf(Invalid, "%s %q: is not one of %v", what, Clipped(string(text)), names)
	}
	*into = E(i)
	return nil
}
