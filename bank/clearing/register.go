package clearing

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
)

// These are the maximum numbers of authorisations in a register: in total, and of one owner.
const (
	maxRegistered = 1 << 20
	maxOwned      = 10_000
)

// register holds authorisations by identifier, and in the order of their ends.
type register[T any, P registered[T]] struct {
	byID  map[string]*entry[T]
	queue []*entry[T]                       // a heap: the authorisation that ends next is first
	owned map[string]int                    // by owner: number of authorisations
	with  map[messages.Name]map[string]bool // by the other site: identifiers of its authorisations
}

type entry[T any] struct {
	id    string
	at    messages.Time
	value T
	place int // position in the queue
}

type registered[T any] interface {
	*T
	entry() (id, owner string, site messages.Name, until messages.Time)
}

func newRegister[T any, P registered[T]]() register[T, P] {
	return register[T, P]{byID: map[string]*entry[T]{}, owned: map[string]int{}, with: map[messages.Name]map[string]bool{}}
}

func (r *register[T, P]) find(id string) *T {
	if e := r.byID[id]; e != nil {
		return &e.value
	}
	return nil
}

// room returns a refusal if the register has too many authorisations in total, or too many for the accounts of this
// owner.
func (r *register[T, P]) room(owner string) *Rejected {
	if r.owned[owner] >= maxOwned {
		return reject(Flood, messages.Exhausted, "%d authorisations of account %q are remembered, the most there may be: try again when some have ended", r.owned[owner], clip(owner))
	}
	if len(r.byID) >= maxRegistered {
		return ordinary(messages.Errorf(messages.Exhausted, "%d authorisations are remembered, the most there may be: try again later", len(r.byID)))
	}
	return nil
}

func (r *register[T, P]) add(value T) {
	id, owner, site, at := P(&value).entry()
	e := &entry[T]{id: id, at: at, value: value}
	r.byID[id] = e
	r.owned[owner]++
	if r.with[site] == nil {
		r.with[site] = map[string]bool{}
	}
	r.with[site][id] = true
	r.order().Push(&r.queue, e)
}

func (r *register[T, P]) drop(id string) {
	e := r.byID[id]
	delete(r.byID, id)
	r.order().Remove(&r.queue, e.place)
	_, owner, site, _ := P(&e.value).entry()
	if r.owned[owner]--; r.owned[owner] == 0 {
		delete(r.owned, owner)
	}
	if delete(r.with[site], id); len(r.with[site]) == 0 {
		delete(r.with, site)
	}
}

func (r *register[T, P]) next() messages.Time {
	if len(r.queue) == 0 {
		return 0
	}
	return r.queue[0].at
}

// due returns the authorisation that ended first, if it has ended by now. Otherwise it returns nil.
func (r *register[T, P]) due(now messages.Time) *T {
	if len(r.queue) == 0 || r.queue[0].at > now {
		return nil
	}
	return &r.queue[0].value
}

func (r *register[T, P]) between(site messages.Name) []T {
	list := make([]T, 0, len(r.with[site]))
	for _, id := range slices.Sorted(maps.Keys(r.with[site])) {
		list = append(list, r.byID[id].value)
	}
	return list
}

func (r *register[T, P]) sorted() []T {
	list := make([]T, 0, len(r.byID))
	for _, id := range slices.Sorted(maps.Keys(r.byID)) {
		list = append(list, r.byID[id].value)
	}
	return list
}

// order returns the heap order: by end, then by identifier.
func (r *register[T, P]) order() *heap.Order[*entry[T]] {
	return &heap.Order[*entry[T]]{
		Before: func(a, b *entry[T]) bool { return a.at < b.at || a.at == b.at && a.id < b.id },
		Moved:  func(e *entry[T], at int) { e.place = at },
	}
}
