package job

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// These constants bound the resources of one node, and the request of one task.
const (
	MaxCPUs    = 1 << 16
	MaxGPUs    = 1 << 10
	MaxMemory  = 1 << 56 // bytes
	MaxDisk    = 1 << 60 // bytes
	MaxChosen  = 1024    // nodes in the lists of a stage, chosen or excluded
	MaxMarks   = 64      // labels of a node
	MaxFormula = 1024    // bytes of a constraint
)

// AllMemory is the value of a stage's field Memory if the stage asks for all memory of a node.
const AllMemory = -1

// Resources are amounts of processors, memory, GPUs and disk. They describe what a node has, what a slot has, or what a
// task asks for. If a task asks for 0, it gets what its slots have.
type Resources struct {
	CPUs    int           `json:"cpus,omitempty"`     // processors
	Memory  int64         `json:"memory,omitempty"`   // bytes; text such as 4G
	GPUs    int           `json:"gpus,omitempty"`     // devices
	GPUType messages.Name `json:"gpu_type,omitempty"` // type of the devices, such as a100; empty means any
	Disk    int64         `json:"disk,omitempty"`     // bytes; text such as 100G
}

// ClassUnit is the resources of one slot of a class.
type ClassUnit struct {
	Class messages.Name `json:"class"` // one of the market's classes
	Unit  Resources     `json:"unit"`  // resources of one slot
}

func (r *Resources) amounts() [4]struct {
	name  string
	value int64
	most  int64
} {
	type amount = struct {
		name  string
		value int64
		most  int64
	}
	return [4]amount{{"cpus", int64(r.CPUs), MaxCPUs}, {"memory", r.Memory, MaxMemory}, {"gpus", int64(r.GPUs), MaxGPUs}, {"disk", r.Disk, MaxDisk}}
}

// Width returns the least number of slots that together have the resources in `shape`, at least 1. Each slot has the
// resources in `unit`. The result `ok` is false if no number of slots is enough, because `unit` lacks a resource or has
// GPUs of another type. If `unit` has no type of GPU, it has enough for every type, because its nodes may have GPUs of
// any type.
func (unit Resources) Width(shape Resources) (slots int, ok bool) {
	if shape.GPUs > 0 && shape.GPUType != "" && unit.GPUType != "" && shape.GPUType != unit.GPUType {
		return 0, false
	}
	slots = 1
	has, wants := unit.amounts(), shape.amounts()
	for i := range wants {
		if wants[i].value <= 0 {
			continue
		}
		if has[i].value <= 0 {
			return 0, false
		}
		n := (wants[i].value-1)/has[i].value + 1
		if n > math.MaxInt32 {
			return 0, false
		}
		slots = max(slots, int(n))
	}
	return slots, true
}

// Holds returns how many units fit into the resources.
func (r Resources) Holds(unit Resources) int {
	if unit.GPUType != "" && unit.GPUType != r.GPUType {
		return 0
	}
	units := int64(math.MaxInt32)
	has, wants := r.amounts(), unit.amounts()
	for i := range wants {
		if wants[i].value > 0 {
			units = min(units, max(has[i].value, 0)/wants[i].value)
		}
	}
	return int(units)
}

// Of returns a copy of the unit. A resource that is 0 in the argument is 0 in the copy.
func (unit Resources) Of(has *Resources) Resources {
	if has.CPUs == 0 {
		unit.CPUs = 0
	}
	if has.Memory == 0 {
		unit.Memory = 0
	}
	if has.GPUs == 0 {
		unit.GPUs, unit.GPUType = 0, ""
	}
	if has.Disk == 0 {
		unit.Disk = 0
	}
	return unit
}

// Less subtracts the resources `some` from r. An amount can become negative.
func (r Resources) Less(some Resources) Resources {
	r.CPUs, r.Memory, r.GPUs, r.Disk = r.CPUs-some.CPUs, r.Memory-some.Memory, r.GPUs-some.GPUs, r.Disk-some.Disk
	return r
}

// Times multiplies the resources of one slot by a number of slots.
func (unit Resources) Times(slots int) Resources {
	return Resources{CPUs: unit.CPUs * slots, Memory: unit.Memory * int64(slots), GPUs: unit.GPUs * slots, GPUType: unit.GPUType, Disk: unit.Disk * int64(slots)}
}

// Sold says for people how much of the resources is sold: "3 of 4 cpus, 6G of 16G of memory".
func (r Resources) Sold(sold Resources) string {
	var parts []string
	for _, a := range [...]struct {
		sold, all int64
		name      string
		size      bool
	}{{int64(sold.CPUs), int64(r.CPUs), "cpus", false}, {sold.Memory, r.Memory, "memory", true}, {int64(sold.GPUs), int64(r.GPUs), "gpus", false}, {sold.Disk, r.Disk, "disk", true}} {
		switch {
		case a.all == 0:
		case a.size:
			parts = append(parts, SizeText(max(a.sold, 0))+" of "+SizeText(a.all)+" of "+a.name)
		default:
			parts = append(parts, fmt.Sprintf("%d of %d %s", a.sold, a.all, a.name))
		}
		if a.name == "gpus" && a.all > 0 && r.GPUType != "" {
			parts[len(parts)-1] += " (" + r.GPUType + ")"
		}
	}
	return strings.Join(parts, ", ")
}

// String writes the resources for people: "4 cpus, 16G of memory, 1 gpu (a100)".
func (r Resources) String() string {
	var parts []string
	add := func(n int64, format, one string) {
		if n == 1 && one != "" {
			format = one
		}
		if n != 0 {
			parts = append(parts, strings.ReplaceAll(format, "#", strconv.FormatInt(n, 10)))
		}
	}
	add(int64(r.CPUs), "# cpus", "1 cpu")
	if r.Memory != 0 {
		parts = append(parts, SizeText(r.Memory)+" of memory")
	}
	add(int64(r.GPUs), "# gpus", "1 gpu")
	if r.GPUs != 0 && r.GPUType != "" {
		parts[len(parts)-1] += " (" + r.GPUType + ")"
	}
	if r.Disk != 0 {
		parts = append(parts, SizeText(r.Disk)+" of disk")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// SizeText returns a number of bytes in the largest unit that gives at least 1, rounded up: "4G", "1.5T".
func SizeText(bytes int64) string {
	if bytes == AllMemory {
		return "all"
	}
	units := "KMGTPE"
	if bytes < 1<<10 {
		return strconv.FormatInt(bytes, 10) + "B"
	}
	value, at := float64(bytes)/1024, 0
	for value >= 1024 && at < len(units)-1 {
		value, at = value/1024, at+1
	}
	return strconv.FormatFloat(math.Ceil(value*10)/10, 'f', -1, 64) + units[at:at+1]
}

// ParseSize reads a number of bytes with a unit, such as 512M or 1.5T. The units are K, M, G and so on. Each is 1,024
// times the unit before it. A number without a unit is a number of bytes.
func ParseSize(text string) (bytes int64, err error) {
	digits, shift := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I"), 0
	if n := len(digits); n > 0 {
		if at := strings.IndexByte("KMGTPE", digits[n-1]); at >= 0 {
			digits, shift = digits[:n-1], 10*(at+1)
		}
	}
	v, parseErr := strconv.ParseFloat(digits, 64)
	if v = math.Ldexp(v, shift); parseErr != nil || !(v >= 0) || v >= 1<<62 {
		return 0, fmt.Errorf("%q: must be a size such as 512M or 4G", messages.Clipped(text))
	}
	return int64(v), nil
}

// ParseField reads the text of a field in a file that people write, such as memory: 4G. It reports false for fields
// that are not sizes.
func (r *Resources) ParseField(key, text string) (isSize bool, err error) {
	field := map[string]*int64{"memory": &r.Memory, "disk": &r.Disk}[key]
	if field == nil {
		return false, nil
	}
	bytes, err := ParseSize(text)
	if err == nil && bytes > 0 && bytes < MinMemory {
		return true, fmt.Errorf("%s: is %d bytes, and less than 1M: write a unit, such as %[1]sG", text, bytes)
	}
	*field = bytes
	return true, err
}

// Validate checks the amounts of a node or of a unit. The argument `path` is the path of the field, for errors.
func (r *Resources) Validate(path string) error {
	for _, a := range r.amounts() {
		if a.value < 0 {
			return messages.Errorf(messages.Invalid, "%s.%s: %d must not be negative; if the task needs none, leave the field out", path, a.name, a.value)
		}
		if a.value > a.most {
			return messages.Errorf(messages.TooLarge, "%s.%s: %d is above the limit of %d", path, a.name, a.value, a.most)
		}
	}
	if r.GPUType != "" && r.GPUs == 0 {
		return messages.Errorf(messages.Invalid, "%s.gpu_type: %q is a type of GPUs, and there are no GPUs; give the field gpus too", path, messages.Clipped(r.GPUType))
	}
	return messages.CheckFreeName(path+".gpu_type", r.GPUType)
}

// Needs returns the resources that a task of the stage asks for. It ignores requests for a whole node, or for all its
// memory.
func (s *Stage) Needs() Resources {
	return Resources{CPUs: s.CPUs, Memory: max(s.Memory, 0), GPUs: s.GPUs, GPUType: s.GPUType, Disk: s.Disk}
}

// Shaped reports whether the stage asks for something that needs a class whose slots have a size (a unit). A memory
// limit alone does not need such a class.
func (s *Stage) Shaped() bool {
	return s.CPUs != 0 || s.GPUs != 0 || s.Disk != 0 || s.Exclusive || s.Memory == AllMemory
}

// TakesNode reports whether a task of the stage takes all slots of a node.
func (s *Stage) TakesNode() bool { return s.Exclusive || s.Memory == AllMemory }

// NamesNodes reports whether the stage's tasks may run on some nodes only.
func (s *Stage) NamesNodes() bool {
	return s.Constraint != "" || s.GPUType != "" || len(s.Nodes)+len(s.Exclude) > 0
}

// Slots returns the width of a task of the stage: how many slots it takes on one node.
func (s *Stage) Slots() int { return max(s.Width, 1) }

func (s *Stage) validateShape(path string) error {
	for _, a := range [...]struct {
		name        string
		value, most int64
	}{{"cpus", int64(s.CPUs), MaxCPUs}, {"gpus", int64(s.GPUs), MaxGPUs}, {"disk", s.Disk, MaxDisk}, {"width", int64(s.Width), math.MaxInt32}} {
		if a.value < 0 {
			return messages.Errorf(messages.Invalid, "%s.%s: %d must not be negative; the default is what one slot has", path, a.name, a.value)
		}
		if a.value > a.most {
			return messages.Errorf(messages.TooLarge, "%s.%s: %d is above the limit of %d for a task", path, a.name, a.value, a.most)
		}
	}
	switch {
	case s.Memory != 0 && s.Memory != AllMemory && s.Memory < MinMemory:
		return messages.Errorf(messages.Invalid, "%s.memory: %d bytes: must be at least %d bytes, or \"all\" for all memory of a node; leave the field memory out for the node's default", path, s.Memory, MinMemory)
	case s.Memory > MaxMemory:
		return messages.Errorf(messages.TooLarge, "%s.memory: %s is more than the limit of %s for a task", path, SizeText(s.Memory), SizeText(MaxMemory))
	case s.GPUType != "" && s.GPUs == 0:
		return messages.Errorf(messages.Invalid, "%s.gpu_type: %q is a type of GPUs, and the stage asks for no GPUs; give the field gpus too", path, messages.Clipped(s.GPUType))
	}
	if err := messages.CheckFreeName(path+".gpu_type", s.GPUType); err != nil {
		return err
	}
	for _, l := range [...]struct {
		name  string
		nodes []messages.Name
	}{{"nodes", s.Nodes}, {"exclude", s.Exclude}} {
		if len(l.nodes) > MaxChosen {
			return messages.Errorf(messages.TooLarge, "%s.%s: %d is above the limit of %d", path, l.name, len(l.nodes), MaxChosen)
		}
		if err := messages.Distinct(path+"."+l.name, l.nodes, messages.NeedName); err != nil {
			return err
		}
	}
	if _, err := ParseConstraint(s.Constraint); err != nil {
		return messages.Errorf(messages.KindOf(err), "%s.constraint: %s", path, messages.Detail(err))
	}
	return s.Licenses.Validate(path + ".licenses")
}

// Constraint is a list of lists of labels. A node satisfies it if the node has all labels of at least one of the inner
// lists. Any node satisfies an empty Constraint.
type Constraint [][]messages.Name

// ParseConstraint reads labels with & (all of them) and | (one of them). As in most languages, & binds tighter than |.
// The text can have no parentheses.
func ParseConstraint(text string) (c Constraint, err error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxFormula {
		return nil, messages.Errorf(messages.TooLarge, "%d bytes are more than the limit of %d", len(text), MaxFormula)
	}
	for choice := range strings.SplitSeq(text, "|") {
		var all []messages.Name
		for label := range strings.SplitSeq(choice, "&") {
			if label = strings.TrimSpace(label); !messages.ValidFreeName(label) {
				return nil, messages.Errorf(messages.Invalid, "%q: %q is not a label; write labels of nodes with & and |, as in a100&infiniband|v100", messages.Clipped(text), messages.Clipped(label))
			}
			all = append(all, label)
		}
		c = append(c, all)
	}
	return c, nil
}

// Satisfied reports whether a node with these labels satisfies the constraint.
func (c Constraint) Satisfied(labels []messages.Name) bool {
	if len(c) == 0 {
		return true
	}
	return slices.ContainsFunc(c, func(all []messages.Name) bool {
		return !slices.ContainsFunc(all, func(label messages.Name) bool { return !slices.Contains(labels, label) })
	})
}
