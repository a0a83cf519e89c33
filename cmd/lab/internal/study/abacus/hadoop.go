package abacus

import (
	"math/rand/v2"
	"slices"
)

// copies is the number of nodes that have the input data of a map task. It is Hadoop's default.
const copies = 3

// hadoop has properties of Hadoop 0.20 clusters. The zero value of each property means that the model does not have it.
type hadoop struct {
	// slowStart is a fraction of a job's map tasks. When so many map tasks have ended, the job's reduce tasks take slots.
	// On these slots they wait until all map tasks have ended. 0 means that the reduce tasks take slots only when all map
	// tasks have ended.
	slowStart float64
	// away is a factor: how many times longer a map task takes on a node without the task's data. 0 means that all
	// nodes have the data.
	away    float64
	perNode int // map slots of a node
	// patient is true if the rule "first in, first out" skips a job whose data is not on the node of the free slot. The
	// scheduler of the auction always skips such jobs.
	patient bool
}

// spread decides for each job how many of its maps must end before its reduces may take slots. For each map, it also
// draws the nodes that store the map's data.
func (c *cluster) spread(jobs []*mapReduce, seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(len(c.users))))
	for _, j := range jobs {
		if c.slowStart > 0 {
			j.early = int((1 - c.slowStart) * float64(len(j.durations[mapClass])))
		}
		for range j.durations[mapClass] {
			if c.away > 0 {
				j.data = append(j.data, some(c.slots[mapClass]/c.perNode, r))
			}
		}
	}
}

// This function draws different nodes for the copies of a map's data.
func some(nodes int, r *rand.Rand) (of [copies]int) {
	for k := range of {
		for of[k] = r.IntN(nodes); slices.Contains(of[:k], of[k]); {
			of[k] = r.IntN(nodes)
		}
	}
	return of
}

// near returns the index of a waiting map task whose data is on the node, or −1 if there is none.
func (j *mapReduce) near(node int) int {
	for t := j.next[mapClass]; t < len(j.data); t++ {
		if slices.Contains(j.data[t][:], node) {
			return t
		}
	}
	return -1
}

// nodes returns, for each map slot, the number of the node that has this slot. If it does not matter on which node a
// task runs, nodes returns nil. It is called at the start, when all slots are free.
func (c *cluster) nodes() []int {
	var idle []int
	for slot := range c.slots[mapClass] {
		if c.away > 0 {
			idle = append(idle, slot%(c.slots[mapClass]/c.perNode))
		}
	}
	return idle
}

// place chooses a job whose map task will run on the map slot that has been free for longest. If the job has a map task
// whose data is on the slot's node, this task becomes the job's next one.
func (r *course) place() *mapReduce {
	node := r.idle[0]
	var j *mapReduce
	if !r.fifo || r.patient {
		j = r.pick(mapClass, func(j *mapReduce) bool { return j.near(node) >= 0 })
	}
	if j == nil {
		j = r.pick(mapClass, nil)
	}
	if j == nil {
		return nil
	}
	next, t := j.next[mapClass], j.near(node)
	r.maps++
	if d := j.durations[mapClass]; t >= 0 {
		d[next], d[t], j.data[next], j.data[t] = d[t], d[next], j.data[t], j.data[next]
	} else {
		d[next] *= r.away
		r.strays++
	}
	return j
}
