package batchqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/profile"
)

func TestTimelineIsAProfile(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		nodes := rapid.IntRange(1, 12).Draw(r, "nodes")
		length := rapid.OneOf(rapid.Float64Range(0, 10), rapid.Map(rapid.IntRange(0, 5), func(n int) float64 { return float64(n) }), rapid.Just(1e15), rapid.Just(1e-9))
		p, l, half := profile.New(nodes), timeline{}, timeline{}
		l.reset(nodes)
		for i := range rapid.IntRange(1, 80).Draw(r, "jobs") {
			long, width := length.Draw(r, "length"), rapid.IntRange(1, nodes).Draw(r, "width")
			want := p.Soonest(0, long, width)
			p.Insert(want, long, width)
			if got := l.place(long, width); got != want {
				r.Fatalf("job %d starts at %v, by the profile at %v", i, got, want)
			}
			if i == 20 { // from here on a copy is used; it must behave like the original
				half.copy(&l)
				l, half = half, l
			}
		}
	})
}

func TestRedrawnAsListsAndAsProfiles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q, e := thesis(rapid.IntRange(2, 25).Draw(r, "jobs"), rapid.IntRange(2, 40).Draw(r, "nodes"))
		e.Mode, e.Draws, e.Seed = Full, rapid.IntRange(1, 60).Draw(r, "draws"), rapid.Uint64().Draw(r, "seed")
		for range rapid.IntRange(0, 3).Draw(r, "running") {
			q.Running = append(q.Running, Hold{Width: max(1, q.Nodes/4), Remaining: rapid.Float64Range(0, 50).Draw(r, "remaining")})
		}
		q.Running = q.Running[:min(len(q.Running), q.Nodes)]
		lists, profiles := redrawnWith(q, newSampler(e), newTimelines), redrawnWith(q, newSampler(e), newSchedules)
		for b := range newSampler(e).batches {
			got, want := make([]float64, len(q.Jobs)), make([]float64, len(q.Jobs))
			lists(b, got)
			profiles(b, want)
			if !slices.Equal(got, want) {
				r.Fatalf("batch %d: %v, by profiles %v", b, got, want)
			}
		}
	})
}
