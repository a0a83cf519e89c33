package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct{ key, place int }

// TestHeap adds, removes and changes random values. The first value must always be the least, and every value must know
// its index.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := Order[*item]{Before: func(a, b *item) bool { return a.key < b.key }, Moved: func(v *item, at int) { v.place = at }}
		var heap, all []*item
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(all) == 0 || rapid.Bool().Draw(t, "push") {
				v := &item{key: rapid.IntRange(0, 9).Draw(t, "key")}
				all = append(all, v)
				order.Push(&heap, v)
				continue
			}
			i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
			v := all[i]
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				v.key = rapid.IntRange(0, 9).Draw(t, "new key")
				order.Fix(heap, v.place)
				continue
			case 1:
				v = order.Pop(&heap)
				i = slices.Index(all, v)
			case 2:
				order.Remove(&heap, v.place)
			}
			all = slices.Delete(all, i, i+1)
			if v.place != -1 {
				t.Fatalf("%+v was taken out", v)
			}
		}
		for i, v := range heap {
			if v.place != i || v.key < heap[0].key {
				t.Fatalf("%+v stands at %d, behind %+v", v, i, heap[0])
			}
		}
		if len(heap) != len(all) {
			t.Fatalf("%d are left of %d", len(heap), len(all))
		}
	})
}

func TestPlain(t *testing.T) {
	order := Order[int]{Before: func(a, b int) bool { return a < b }}
	var heap []int
	for _, v := range []int{5, 1, 4, 1, 3, 9, 2} {
		order.Push(&heap, v)
	}
	for _, want := range []int{1, 1, 2, 3, 4, 5, 9} {
		if got := order.Pop(&heap); got != want {
			t.Fatalf("took %d, want %d", got, want)
		}
	}
}
