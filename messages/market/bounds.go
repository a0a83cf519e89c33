package market

import (
	"fmt"
	"math"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Bound limits the slots, the GPUs and the number of tasks that run at the same time. 0 means no limit.
type Bound struct {
	Slots int `json:"slots,omitempty"` // slots in use at once, at most; 0 means any number
	GPUs  int `json:"gpus,omitempty"`  // GPUs in use at once, at most; 0 means any number
	Tasks int `json:"tasks,omitempty"` // tasks that run at once, at most; 0 means any number
}

// OwnerBound is the bound of one account or project. For example, physics may have at most 512 slots.
type OwnerBound struct {
	Name  messages.Name `json:"name"`            // an account, a project, or a site such as "@west"
	Slots int           `json:"slots,omitempty"` // slots in use at once, at most; 0 means any number
	GPUs  int           `json:"gpus,omitempty"`  // GPUs in use at once, at most; 0 means any number
	Tasks int           `json:"tasks,omitempty"` // tasks that run at once, at most; 0 means any number
}

// AtOnce limits what the tasks of one account, or of one project, may use at the same time in a market. A task counts
// for its account, and also for the project that pays for it. All accounts of another site count as one account.
type AtOnce struct {
	Account Bound        `json:"account,omitempty,omitzero"` // the bound of each account
	Project Bound        `json:"project,omitempty,omitzero"` // the bound of each project
	Of      []OwnerBound `json:"of,omitempty"`               // bounds of single accounts and projects, in place of the two above
}

// IsZero reports whether nothing is bounded.
func (a AtOnce) IsZero() bool { return !a.Bounds() }

// Bounds reports whether anything is bounded.
func (a *AtOnce) Bounds() bool { return a.Account != Bound{} || a.Project != Bound{} || len(a.Of) > 0 }

// Find returns the bound that applies to an account, or to a project if the argument `project` is true.
func (a *AtOnce) Find(name messages.Name, project bool) Bound {
	for _, of := range a.Of {
		if of.Name == name {
			return of.bound()
		}
	}
	if project {
		return a.Project
	}
	return a.Account
}

func (o *OwnerBound) bound() Bound { return Bound{o.Slots, o.GPUs, o.Tasks} }

func (a *AtOnce) validate() error {
	seen := map[messages.Name]bool{}
	check := func(path string, b Bound) error {
		for _, f := range [...]struct {
			field string
			value int
		}{{"slots", b.Slots}, {"gpus", b.GPUs}, {"tasks", b.Tasks}} {
			if f.value < 0 || f.value > math.MaxInt32 {
				return messages.Errorf(messages.Invalid, "%s.%s: %d must be from 1 to %d; leave the field out to set no limit", path, f.field, f.value, math.MaxInt32)
			}
		}
		return nil
	}
	if len(a.Of) > MaxOwners {
		return messages.Errorf(messages.TooLarge, "at_once.of: %d is above the limit of %d", len(a.Of), MaxOwners)
	}
	for i, of := range a.Of {
		path := fmt.Sprintf("at_once.of[%d]", i)
		switch err := check(path, of.bound()); {
		case err != nil:
			return err
		case !messages.ValidFreeName(strings.TrimPrefix(of.Name, "@")):
			return messages.Errorf(messages.Invalid, "%s.name: %q must be an account or a project such as alice, or @west for all accounts of site west", path, messages.Clipped(of.Name))
		case seen[of.Name]:
			return messages.Errorf(messages.Invalid, "%s.name: %q is given twice", path, of.Name)
		}
		seen[of.Name] = true
	}
	if err := check("at_once.account", a.Account); err != nil {
		return err
	}
	return check("at_once.project", a.Project)
}
