package batchqueue

import (
	"math/bits"
	"math/rand/v2"
)

// sampler draws the types of jobs, one batch at a time. The drawn types depend only on the seed, the job and the batch.
// The draws of a job are spread evenly over its distribution. They are combined at random with the draws of other jobs
// (Latin hypercube). Within one draw, the types of the jobs are independent, and each follows its prior exactly.
type sampler struct {
	seed    uint64
	draws   int
	batches int
	types   []*inverse // by job
	uniform []float64
}

// leastBatches is the least number of batches. Batches are independent, so the differences of their means give the
// standard errors. A batch has at most mostTypes types, because all are in memory.
const leastBatches, mostTypes = 16, 1 << 20

func newSampler(e *Expectation) *sampler {
	s := &sampler{seed: e.Seed, draws: e.Draws}
	s.batches = min(e.Draws, max(leastBatches, int(float64(e.Draws)*float64(len(e.Priors))/mostTypes)))
	s.uniform = make([]float64, s.size(0))
	for i, p := range e.Priors {
		if i > 0 && same(p, e.Priors[i-1]) {
			s.types = append(s.types, s.types[i-1])
			continue
		}
		s.types = append(s.types, invert(p))
	}
	return s
}

func same(p, q Prior) bool {
	return len(p.Points) > 0 && len(p.Points) == len(q.Points) && &p.Points[0] == &q.Points[0]
}

func (s *sampler) size(b int) int {
	size := s.draws / s.batches
	if b < s.draws%s.batches {
		size++
	}
	return size
}

// column returns random numbers in [0, 1) for job i: one number for each draw of batch b. The numbers are valid until
// the next call.
func (s *sampler) column(i, b int) []float64 {
	random := rand.NewPCG(mix(s.seed+uint64(i)), mix(s.seed^uint64(b)<<32))
	out := s.uniform[:s.size(b)]
	stratify(out, random)
	return out
}

// stratify divides [0, 1) into len(out) equal parts, and takes one number from each part. The distance of a number from
// the beginning of its part is random, and the same in all parts. The numbers are then put into random order. So each
// element of the result is uniform in [0, 1).
func stratify(out []float64, random *rand.PCG) {
	place, parts := unit(random), float64(len(out))
	for k := range out {
		out[k] = min((float64(k)+place)/parts, below1)
	}
	for k := len(out) - 1; k > 0; k-- {
		// The choice of an element has a small bias, below len(out)/2^64. It is too small to matter, so no random
		// number is rejected and drawn again.
		other, _ := bits.Mul64(random.Uint64(), uint64(k+1))
		out[k], out[other] = out[other], out[k]
	}
}

// below1 is the largest float64 below 1.
const below1 = 1 - 1./(1<<53)

func unit(random *rand.PCG) float64 { return float64(random.Uint64()>>11) / (1 << 53) }

// mix spreads the bits of a small number (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
