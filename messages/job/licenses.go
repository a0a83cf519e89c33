package job

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

const (
	MaxLicenses     = 64        // different licences of a site, or of a stage
	MaxLicenseCount = 1_000_000 // largest number of licences of one name
)

// License is a number of licences of one name, for example for a program that 5 users may run at once.
type License struct {
	Name  messages.Name `json:"name"`
	Count int           `json:"count"`
}

// Licenses are numbers of licences, sorted by name. In JSON they are an object: {"matlab": 2}.
type Licenses []License

// Of returns the number of licences with a name; 0 if there are none.
func (l Licenses) Of(name messages.Name) int {
	at, found := slices.BinarySearchFunc(l, name, func(l License, name messages.Name) int { return strings.Compare(l.Name, name) })
	if !found {
		return 0
	}
	return l[at].Count
}

// Names returns the names, in order.
func (l Licenses) Names() []messages.Name {
	names := make([]messages.Name, len(l))
	for i := range l {
		names[i] = l[i].Name
	}
	return names
}

// Validate returns an error for the first licence that no site can have. The argument `path` is the path of the field,
// for the error.
func (l Licenses) Validate(path string) error {
	if len(l) > MaxLicenses {
		return messages.Errorf(messages.TooLarge, "%s: %d is above the limit of %d", path, len(l), MaxLicenses)
	}
	if err := licensesForm.Ordered(l); err != nil {
		return messages.Errorf(messages.Invalid, "%s: %s", path, messages.Detail(err))
	}
	for _, of := range l {
		switch {
		case !messages.ValidFreeName(of.Name):
			return messages.BadFreeName(path, of.Name)
		case of.Count < 1:
			return messages.Errorf(messages.Invalid, "%s.%s: %d must be 1 or above; if the job needs none, leave the licence out", path, of.Name, of.Count)
		case of.Count > MaxLicenseCount:
			return messages.Errorf(messages.TooLarge, "%s.%s: %d is above the limit of %d", path, of.Name, of.Count, MaxLicenseCount)
		}
	}
	return nil
}

// LicenseStatus has the number of licences of one name that a site has, and the number in use.
type LicenseStatus struct {
	Name  messages.Name `json:"name"`
	Total int           `json:"total"`
	Used  int           `json:"used"` // used by tasks; may be above Total after the operator has lowered it
}
