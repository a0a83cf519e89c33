package machine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// Machine says which part of this machine a node's tasks share. If it is the zero value, the machine is not divided,
// and tasks run wherever the kernel puts them.
type Machine struct {
	// CPUs are the numbers of the node's processors. Neighbours in the list are also near one another in the machine.
	CPUs []int `json:"cpus,omitempty"`
	// Memory is the limit of a task that asks for all memory of the node, in bytes; 0 means no bound.
	Memory int64 `json:"memory,omitempty"`
	GPUs   []GPU `json:"gpus,omitempty"`
}

// GPU is one GPU of a node.
type GPU struct {
	Index int           `json:"index"`          // number in the order of the bus, which people use
	ID    string        `json:"uuid,omitempty"` // identifier that the GPU's library uses
	Type  messages.Name `json:"type,omitempty"`
	AMD   bool          `json:"amd,omitempty"`
	// Files are the device files that open this GPU and no other, such as /dev/nvidia0.
	Files  []string `json:"files,omitempty"`
	Memory int64    `json:"memory,omitempty"` // bytes
}

// Portion is a task's part of the machine.
type Portion struct {
	cpus []int // sorted; none means all processors
	gpus []GPU
}

// Stock records which parts of the machine are in use by tasks. It is safe for concurrent use.
type Stock struct {
	machine Machine

	mu    sync.Mutex
	loads []int  // number of tasks on each processor; a suspended task keeps its processors
	taken []bool // the GPUs that tasks have, suspended tasks too
}

func NewStock(m Machine) *Stock {
	return &Stock{machine: m, loads: make([]int, len(m.CPUs)), taken: make([]bool, len(m.GPUs))}
}

// Take gives a task the resources that its program asks for. A GPU belongs to at most one task. Two tasks get the same
// processor only if none is free, for example because of suspended tasks.
func (s *Stock) Take(p *agent.Program) (*Portion, error) {
	if p.Shape == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got, cpus, gpus := new(Portion), p.Shape.CPUs, p.Shape.GPUs
	if p.Exclusive {
		cpus, gpus = len(s.loads), len(s.taken)
	}
	var chosen []int
	for i := range s.machine.GPUs {
		if g := &s.machine.GPUs[i]; len(chosen) < gpus && !s.taken[i] && (p.Shape.GPUType == "" || p.Shape.GPUType == g.Type) {
			chosen = append(chosen, i)
			got.gpus = append(got.gpus, *g)
		}
	}
	if len(chosen) < gpus && len(s.machine.GPUs) > 0 {
		return nil, messages.Errorf(messages.Unavailable, "the task asks for %d GPUs, but %d are free here: running or suspended tasks have the other GPUs", gpus, len(chosen))
	}
	for _, i := range chosen {
		s.taken[i] = true
	}
	for _, i := range s.nearest(cpus) {
		s.loads[i]++
		got.cpus = append(got.cpus, s.machine.CPUs[i])
	}
	slices.Sort(got.cpus)
	return got, nil
}

// nearest returns the positions of n processors. It prefers free neighbours. If there are too few, it takes the
// processors that the fewest tasks use. It returns none if there are fewer than n processors.
func (s *Stock) nearest(n int) []int {
	if n <= 0 || n > len(s.loads) {
		return nil
	}
	positions := make([]int, len(s.loads))
	for i := range positions {
		positions[i] = i
	}
	best, room := -1, 0
	for at := 0; at < len(s.loads); { // use the smallest gap with room, so that larger gaps stay
		end := at
		for end < len(s.loads) && s.loads[end] == 0 {
			end++
		}
		if gap := end - at; gap >= n && (best < 0 || gap < room) {
			best, room = at, gap
		}
		at = max(end, at+1)
	}
	if best >= 0 {
		return positions[best : best+n]
	}
	slices.SortStableFunc(positions, func(a, b int) int { return cmp.Compare(s.loads[a], s.loads[b]) })
	return positions[:n]
}

// Give returns a task's part of the machine to the stock. If back is nil, it does nothing.
func (s *Stock) Give(back *Portion) {
	if back == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range back.cpus {
		s.loads[slices.Index(s.machine.CPUs, c)]--
	}
	for _, g := range back.gpus {
		s.taken[slices.IndexFunc(s.machine.GPUs, func(o GPU) bool { return o.Index == g.Index })] = false
	}
}

// GPUVariables tell a task which GPUs it has. If a task has its own part of the node's resources, it gets these
// variables only from here.
var GPUVariables = []string{"CANDOR_GPUS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES"}

// Variables returns the environment variables that name the GPUs of a task. If `held` is true, the task can open only
// these GPUs, and programs then number them from 0.
func (p *Portion) Variables(held bool) []string {
	if p == nil {
		return nil
	}
	var indices, cuda, rocr []string
	for _, g := range p.gpus {
		name := cmp.Or(g.ID, strconv.Itoa(g.Index))
		list := &cuda
		if g.AMD {
			list = &rocr
		}
		if held && len(g.Files) > 0 {
			name = strconv.Itoa(len(*list))
		}
		*list = append(*list, name)
		indices = append(indices, strconv.Itoa(g.Index))
	}
	return []string{"CANDOR_GPUS=" + strings.Join(indices, ","), "CUDA_VISIBLE_DEVICES=" + strings.Join(cuda, ","), "CUDA_DEVICE_ORDER=PCI_BUS_ID",
		"ROCR_VISIBLE_DEVICES=" + strings.Join(rocr, ",")}
}

// set writes a list of processors in the form of the kernel: "0-3,8".
func set(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if last > i {
			b.WriteString("-" + strconv.Itoa(cpus[last]))
		}
		i = last + 1
	}
	return b.String()
}
