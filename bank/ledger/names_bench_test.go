package ledger

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// BenchmarkNames adds up to a million names to a set, and reads a page of it.
func BenchmarkNames(b *testing.B) {
	const most = 1_000_000
	list := make([]messages.Name, most)
	for i := range list {
		list[i] = fmt.Sprintf("u%08x", uint32(i)*2654435761)
	}
	b.Run("add", func(b *testing.B) {
		var set names
		for i := range b.N {
			if i%most == 0 {
				set = names{}
			}
			set.add(list[i%most])
		}
	})
	b.Run("page", func(b *testing.B) {
		var set names
		for _, name := range list {
			set.add(name)
		}
		for b.Loop() {
			left := MaxAccounts
			for range set.after("u8") {
				if left--; left == 0 {
					break
				}
			}
		}
	})
}
