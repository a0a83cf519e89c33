package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Listed are the numbers of an account's jobs, wherever they run, ascending; with ""
// of all. They must not be changed.
func (b *Book) Listed(account messages.Name) []messages.JobID { return b.listed[account] }

// Ordered calls yield for each job that has not ended and whose start was ordered
// for good, in no particular order.
func (b *Book) Ordered(yield func(*Job) bool) {
	for _, j := range b.ordered {
		if !yield(j) {
			return
		}
	}
}

// list enters a job that has the highest number.
func (b *Book) list(account messages.Name, id messages.JobID) {
	for _, name := range []messages.Name{account, ""} {
		b.listed[name] = append(b.listed[name], id)
	}
}

// unlist takes a job out that is forgotten: as a rule one of the oldest, so that few
// have to move.
func (b *Book) unlist(account messages.Name, id messages.JobID) {
	for _, name := range []messages.Name{account, ""} {
		ids := b.listed[name]
		at, ok := slices.BinarySearch(ids, id)
		if !ok {
			continue
		}
		copy(ids[1:at+1], ids[:at])
		if b.listed[name] = ids[1:]; len(ids) == 1 {
			delete(b.listed, name)
		}
	}
}

// relist works out the lists of all accounts.
func (b *Book) relist() {
	for id, j := range b.jobs {
		b.list(j.Account, id)
	}
	for id, r := range b.roams {
		b.list(r.Account, id)
	}
	for _, ids := range b.listed {
		slices.Sort(ids)
	}
}
