// Package recent is a map of bounded size. When it is full, it removes the key that was not touched for the longest
// time. It is deterministic, and not safe for concurrent use.
package recent

import "container/list"

// Map is a map of bounded size.
type Map[K comparable, V any] struct {
	most  int
	index map[K]*list.Element
	order *list.List // entries, the most recently touched first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns a map that has room for `most` keys. The number must be at least 1.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: most, index: map[K]*list.Element{}, order: list.New()}
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return m.order.Len() }

// Get returns the value of a key. Unlike Touch, it does not change the order in which keys are removed.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	e := m.index[k]
	if e == nil {
		return v, false
	}
	return e.Value.(*entry[K, V]).value, true
}

// Touch returns the value of a key, and makes this key the most recently touched one. If the key is missing, Touch adds
// it, with the value that the function `fresh` returns. If the map is full, Touch first removes the key whose last
// touch is the longest ago. Touch takes O(1).
func (m *Map[K, V]) Touch(k K, fresh func() V) V {
	if e := m.index[k]; e != nil {
		m.order.MoveToFront(e)
		return e.Value.(*entry[K, V]).value
	}
	if m.order.Len() == m.most {
		delete(m.index, m.order.Remove(m.order.Back()).(*entry[K, V]).key)
	}
	v := fresh()
	m.index[k] = m.order.PushFront(&entry[K, V]{k, v})
	return v
}

// OldestFirst visits every key. The key whose last Touch was longest ago comes first. If another map gets the same keys
// and values in this order, both maps are equal.
func (m *Map[K, V]) OldestFirst(visit func(K, V)) {
	for e := m.order.Back(); e != nil; e = e.Prev() {
		x := e.Value.(*entry[K, V])
		visit(x.key, x.value)
	}
}
