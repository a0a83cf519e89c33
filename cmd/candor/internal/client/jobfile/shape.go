package jobfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// relative has amounts per processor or per GPU. The amounts for a whole task are known only after all options were
// read.
type relative struct {
	perCPU, perGPU int64 // bytes of memory
	cpusPerGPU     int
	leastCPUs      int
}

// shapeOptions declares the options about the resources of a task. The hidden options are options of sbatch.
func (o *Options) shapeOptions() {
	o.option("cpus", "", "`number` of processors of each task (default: what a slot has)", func(job *Job, text string) error {
		job.relative.cpusPerGPU = 0
		return positive(func(s *jobmsg.Stage) *int { return &s.CPUs })(job, text)
	})
	o.option("memory", "", "memory of each task: a `size` such as 512M or 2G, or the word all for all memory of a node;\na bare number is MiB (default: what the task's slots have, or the node's default)", setMemory)
	o.option("gpus", "", "`number` of GPUs of each task, as in 2, or 2:a100 for GPUs of one type", func(job *Job, text string) error {
		n, kind, err := parseGPUs(text)
		job.Spec.Stages[0].GPUs, job.Spec.Stages[0].GPUType, job.allocation.inAll = n, kind, gpus{}
		return err
	})
	o.option("disk", "", "disk of each task, a `size`; a bare number is MiB (default: what the task's slots have)", func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Disk, err = parseSize(text)
		return err
	})
	o.rules["exclusive"] = func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Exclusive, err = strconv.ParseBool(text)
		return err
	}
	o.Flags.BoolFunc("exclusive", "give each task a whole node", o.check("exclusive"))
	o.option("constraint", "", "run only on nodes with these `labels`: a100&infiniband|v100 is both of the first two, or the third", setConstraint)
	o.option("nodelist", "", "run only on one of these `nodes`, as in node1,node[3-5]", func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Nodes, err = parseNodes(text)
		job.allocation.listed = 0
		return err
	})
	o.option("exclude", "", "run on none of these `nodes`, as in node1,node[3-5]", func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Exclude, err = parseNodes(text)
		return err
	})
	o.option("licenses", "L", "how many of the site's `licences` each task has while it runs, as in matlab:2,ansys;\nthe tasks of an allocation share these licences", func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Licenses, err = parseLicenses(text)
		return err
	})
	o.hidden("mem-per-cpu", perEach(func(r *relative) *int64 { return &r.perCPU }))
	o.hidden("mem-per-gpu", perEach(func(r *relative) *int64 { return &r.perGPU }))
	o.hidden("cpus-per-gpu", func(job *Job, text string) (err error) {
		job.Spec.Stages[0].CPUs = 0
		job.relative.cpusPerGPU, err = count1(text)
		return err
	})
	o.hidden("mincpus", func(job *Job, text string) (err error) {
		job.relative.leastCPUs, err = count1(text)
		return err
	})
}

// The method hidden declares an option of sbatch that the help does not show.
func (o *Options) hidden(name string, set rule) {
	o.option(name, "", "", set)
	_ = o.Flags.MarkHidden(name)
}

// setMemory sets the memory of a whole task. It replaces an earlier amount for each processor or GPU, because the last
// option counts.
func setMemory(job *Job, text string) (err error) {
	job.relative.perCPU, job.relative.perGPU = 0, 0
	job.Spec.Stages[0].Memory, err = parseMemory(text)
	return err
}

func perEach(field func(*relative) *int64) rule {
	return func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Memory, job.relative.perCPU, job.relative.perGPU = 0, 0, 0
		*field(&job.relative), err = parseSize(text)
		if err == nil && *field(&job.relative) == 0 { // --mem-per-cpu=0 means all memory, as --mem=0 does
			job.Spec.Stages[0].Memory = jobmsg.AllMemory
		}
		return err
	}
}

// Some options give an amount for each unit of another resource: memory for each processor, or processors for each GPU.
// finishShape computes the task's resources from these options.
func (job *Job) finishShape() error {
	r := job.relative
	if r == (relative{}) && job.allocation == (allocation{}) || len(job.Spec.Stages) != 1 {
		return nil
	}
	s := &job.Spec.Stages[0]
	job.asked = asked{Resources: jobmsg.Resources{CPUs: s.CPUs, Memory: s.Memory, GPUs: s.GPUs, GPUType: s.GPUType}, tasks: s.Tasks, onFailure: s.OnFailure, allocation: job.allocation}
	if err := job.finishAllocation(); err != nil {
		return err
	}
	if (r.cpusPerGPU > 0 || r.perGPU > 0) && s.GPUs == 0 {
		return messages.Errorf(messages.Invalid, "--cpus-per-gpu and --mem-per-gpu need GPUs: use --gpus")
	}
	if r.cpusPerGPU > 0 {
		s.CPUs = r.cpusPerGPU * s.GPUs
	}
	s.CPUs = max(s.CPUs, r.leastCPUs)
	each, n := r.perCPU, max(s.CPUs, 1)
	if r.perGPU > 0 {
		each, n = r.perGPU, s.GPUs
	}
	if each > 0 {
		if each > jobmsg.MaxMemory/int64(n) {
			return messages.Errorf(messages.TooLarge, "memory: %d times %s is more than any node has", n, jobmsg.SizeText(each))
		}
		s.Memory = each * int64(n)
	}
	return nil
}

// parseMemory reads a size or "all". For sbatch, 0 also means all memory of a node.
func parseMemory(text string) (bytes int64, err error) {
	if strings.EqualFold(text, "all") {
		return jobmsg.AllMemory, nil
	}
	if bytes, err = parseSize(text); err != nil {
		return 0, fmt.Errorf("%q: must be a size such as 512M or 2G, or all", text)
	}
	if bytes == 0 {
		return jobmsg.AllMemory, nil
	}
	return bytes, nil
}

func count1(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > jobmsg.MaxCPUs {
		return 0, fmt.Errorf("must be a whole number from 1 to %d", jobmsg.MaxCPUs)
	}
	return n, nil
}

// parseGPUs reads a number and a type of GPUs: 2, 2:a100, a100:2. A type alone (a100) means one GPU.
func parseGPUs(text string) (n int, kind messages.Name, err error) {
	first, second, both := strings.Cut(text, ":")
	n, err = strconv.Atoi(first)
	switch {
	case err == nil:
		kind = second
	case both:
		kind = first
		n, err = strconv.Atoi(second)
	default:
		n, kind, err = 1, first, nil
	}
	if err != nil || n < 0 || n > jobmsg.MaxGPUs || both && kind == "" || kind != "" && !messages.ValidFreeName(kind) {
		return 0, "", fmt.Errorf("%q: write the number of GPUs, from 0 to %d, or the number and the type, like 2 or 2:a100", text, jobmsg.MaxGPUs)
	}
	if n == 0 {
		kind = ""
	}
	return n, kind, nil
}

// parseLicenses reads a list of licences such as matlab:2,ansys. As in Slurm, a name alone means one licence, and "="
// means the same as the colon. "" and matlab:0 mean none.
func parseLicenses(text string) (all jobmsg.Licenses, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, number, counted := strings.Cut(strings.Replace(part, "=", ":", 1), ":")
		n := 1
		if counted {
			n, err = strconv.Atoi(number)
		}
		if err != nil || n < 0 || n > jobmsg.MaxLicenseCount || !messages.ValidFreeName(name) {
			return nil, fmt.Errorf("%q: write the names of licences and how many, like matlab:2,ansys", text)
		}
		if n > 0 {
			all = append(all, jobmsg.License{Name: name, Count: n})
		}
	}
	slices.SortFunc(all, func(a, b jobmsg.License) int { return strings.Compare(a.Name, b.Name) })
	return all, all.Validate("licenses")
}

// setConstraint accepts the forms of sbatch's --constraint that concern one node. "," means "&". Labels have no colon,
// so CPU_GEN:RME asks for the label CPU_GEN.RME. On one node, brackets mean the same as parentheses. On several nodes, [a|b] asks that all nodes have the same label, and
// a*2 asks that two of them have the label a.
func setConstraint(job *Job, text string) error {
	formula := aroundOperators.ReplaceAllString(strings.TrimSpace(text), "$1")
	job.alike = sameLabel.MatchString(formula)
	job.allocation.labelled = 0
	if m := labelOfNodes.FindStringSubmatch(formula); m != nil {
		formula = m[1]
		if job.allocation.labelled, _ = strconv.Atoi(m[2]); job.allocation.labelled == 0 {
			job.allocation.labelled = -1 // refused for all jobs, whatever the other options say
		}
	}
	choices, rest := constraintChoices(strings.NewReplacer(",", "&", "[", "(", "]", ")", ":", ".").Replace(formula), 1)
	plain := strings.Join(choices, "|")
	if _, err := jobmsg.ParseConstraint(plain); err != nil || plain == "" || rest != "" {
		return fmt.Errorf("%q: write labels of nodes with & and |, like a100&infiniband|v100", text)
	}
	job.Spec.Stages[0].Constraint = plain
	return nil
}

var (
	labelOfNodes    = regexp.MustCompile(`^([^][()&|,*]+)\*([0-9]+)$`)
	aroundOperators = regexp.MustCompile(`\s*([][()&|,])\s*`)
	sameLabel       = regexp.MustCompile(`\[[^]]*\|`)
)

// constraintChoices reads labels with &, | and parentheses. It stops at a closing parenthesis or at the end of the
// text. It returns a list of choices without parentheses: for (a|b)&c the choices are a&c and b&c. The operator & binds
// more tightly than |. If there are too many choices, or if more than eight parentheses are within one another, the
// list is empty.
func constraintChoices(text string, depth int) (choices []string, rest string) {
	all := []string{""} // choices that have been read since the last |
	for rest = text; ; rest = rest[1:] {
		var next []string
		if inner, open := strings.CutPrefix(rest, "("); open && depth <= 8 {
			var closed bool
			next, rest = constraintChoices(inner, depth+1)
			if rest, closed = strings.CutPrefix(rest, ")"); !closed {
				return nil, ""
			}
		} else {
			end := len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune("&|()", r) }))
			if end == 0 {
				return nil, ""
			}
			next, rest = []string{rest[:end]}, rest[end:]
		}
		var both []string
		for _, a := range all {
			for _, b := range next {
				both = append(both, strings.TrimPrefix(a+"&"+b, "&"))
			}
		}
		if all = both; len(all)+len(choices) > jobmsg.MaxFormula {
			return nil, ""
		}
		if strings.HasPrefix(rest, "&") {
			continue
		}
		choices, all = append(choices, all...), []string{""}
		if !strings.HasPrefix(rest, "|") {
			return choices, rest
		}
	}
}

// PerNode writes a list of counts in Slurm's form: 4, 4, 3 becomes "4(x2),3".
func PerNode(counts []int) string {
	var parts []string
	for i := 0; i < len(counts); {
		same := 1
		for i+same < len(counts) && counts[i+same] == counts[i] {
			same++
		}
		part := strconv.Itoa(counts[i])
		if same > 1 {
			part += "(x" + strconv.Itoa(same) + ")"
		}
		parts, i = append(parts, part), i+same
	}
	return strings.Join(parts, ",")
}
