package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var shapeFlags = map[string]string{
	"cpus-per-task": "cpus", "mincpus": "mincpus", "mem": "memory", "mem-per-cpu": "mem-per-cpu", "mem-per-gpu": "mem-per-gpu", "tmp": "disk",
	"gres": "gpus", "gpus": "gpus-in-all", "gpus-per-node": "gpus", "gpus-per-task": "gpus-per-task", "cpus-per-gpu": "cpus-per-gpu",
	"exclusive": "exclusive", "constraint": "constraint", "nodelist": "slurm-nodelist", "exclude": "exclude", "licenses": "licenses",
}

// sayShape sets an option about a task's resources, and records it for the variables of Slurm.
func (o *Options) sayShape(flag string, opt sbatchOption) error {
	value := opt.value
	switch opt.name {
	case "exclusive":
		if opt.given && value != "true" {
			return fmt.Errorf("--exclusive=%s is not possible here: a node is shared with all jobs or with no job: use --exclusive", value)
		}
		value = "true"
	case "gres":
		var err error
		others := ""
		if value, others, err = gpusOfGres(value); err != nil {
			return err
		}
		if err := o.Flags.Set("slurm-gres", others); err != nil {
			return err
		}
		if value == "" {
			o.Noted[opt.name] = opt.value
			if _, earlier := o.gpus[opt.written]; !earlier || len(o.gpus) > 1 {
				return nil
			}
			value = "0" // an earlier --gres asked for GPUs; this one replaces it
		}
	case "constraint":
		value = leftToRight(value)
	case "gpus":
		if strings.Contains(value, ",") {
			return fmt.Errorf("%s %q is not possible here: the GPUs of a task are of one type", opt.written, value)
		}
		o.inAll = value
	}
	if flag == "gpus" {
		var err error
		if value, err = o.sameGPUs(opt.written, value); err != nil {
			return err
		}
	}
	if err := o.Flags.Set(flag, value); err != nil {
		return err
	}
	if slices.Contains([]string{"constraint", "gpus", "gpus-in-all", "gpus-per-task"}, flag) {
		if err := o.Flags.Set("slurm-hardware", "true"); err != nil {
			return err
		}
	}
	o.Noted[opt.name] = opt.value
	if flag == "gpus" && o.inAll != "" { // setting "gpus" has cleared "gpus-in-all"
		return o.Flags.Set("gpus-in-all", o.inAll)
	}
	return nil
}

// sameGPUs records the number and type of GPUs that an option names. It returns them as a text. A number or type that
// this option leaves out is taken from the other options. If two options contradict each other, sameGPUs returns an
// error.
func (o *Options) sameGPUs(written, value string) (string, error) {
	if strings.Contains(value, ",") {
		return "", fmt.Errorf("%s %q is not possible here: the GPUs of a task are of one type", written, value)
	}
	number, kind, err := parseGPUs(value)
	if err != nil {
		return "", err
	}
	if o.gpus == nil {
		o.gpus = map[string]gpus{}
	}
	o.gpus[written] = gpus{number, kind} // if an option is repeated, the last one counts
	for other, b := range o.gpus {
		switch {
		case other == written || b.number == 0:
		case number == 0:
			number, kind = b.number, b.kind
		case b.number != number || b.kind != kind && b.kind != "" && kind != "":
			return "", fmt.Errorf("%s %q is not possible here: %s asks for another number or type of GPUs on each node", written, value, other)
		default:
			kind = cmp.Or(kind, b.kind)
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%d:%s", number, kind), ":"), nil
}

// likeGPUs are names of a generic resource that can only mean GPUs, such as gpus, GPU and gpu=2.
var likeGPUs = regexp.MustCompile(`^(?i)gpus?([=0-9].*)?$`)

// gpusOfGres reads a list of generic resources. The result `said` has the number and type of GPUs, such as "gpu",
// "gpu:2", "gpu:a100" or "gpu:a100:2"; it is "" if the list has no GPUs. The result `others` is the list without the
// GPUs.
func gpusOfGres(list string) (said, others string, err error) {
	for part := range strings.SplitSeq(list, ",") {
		name, rest, typed := strings.Cut(strings.TrimPrefix(part, "gres/"), ":")
		switch {
		case strings.EqualFold(part, "none") || part == "NULL" || strings.HasSuffix(part, ":0"):
			continue
		case name != "gpu" && likeGPUs.MatchString(name):
			return "", "", fmt.Errorf("--gres %q is not possible here: write GPUs like gpu:2 or gpu:a100:2", list)
		case name != "gpu":
			others = strings.TrimPrefix(others+","+strings.TrimPrefix(part, "gres/"), ",")
			continue
		case said != "":
			return "", "", fmt.Errorf("--gres %q is not possible here: the GPUs of a task are of one type", list)
		}
		if said = rest; !typed {
			said = "1"
		}
	}
	if said == "" && others == "" {
		said = "0"
	}
	return said, others, nil
}

// GPUsOfGres returns the number and type of the GPUs in a list of generic resources, as in the option --gres of srun.
// If the list has no GPUs, the result is "".
func GPUsOfGres(list string) (string, error) {
	if strings.EqualFold(list, "none") {
		return "none", nil
	}
	gpus, _, err := gpusOfGres(list)
	return gpus, err
}

// leftToRight adds parentheses to a constraint, so that Candor reads it as Slurm does. Slurm reads & and | from left to
// right: a|b&c is (a|b)&c.
func leftToRight(text string) string {
	var read strings.Builder
	or := false // whether a | was read at this level of parentheses
	for rest := text; rest != ""; rest = rest[1:] {
		switch c := rest[0]; c {
		case '(', '[':
			end := closing(rest)
			if end < 0 {
				return text
			}
			read.WriteString(rest[:1] + leftToRight(rest[1:end]))
			rest = rest[end:]
		case '&', ',':
			if or {
				before := "(" + read.String() + ")"
				read.Reset()
				read.WriteString(before)
				or = false
			}
		case '|':
			or = true
		}
		read.WriteByte(rest[0])
	}
	return read.String()
}

// closing returns the position of the parenthesis or bracket that closes the one at the beginning of the text, or -1.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// exclusives are groups of sbatch options that cannot be used together.
var exclusives = [][]string{{"mem", "mem-per-cpu", "mem-per-gpu"}, {"cpus-per-task", "cpus-per-gpu"}}

// forgetGPUs clears the GPUs for each node that the script asked for, if the options in the map `top` replace them.
// This is so if `top` asks for GPUs for the whole job. It is also so if the script asked for GPUs with --gres, and
// `top` has another --gres.
func (o *Options) forgetGPUs(top map[string]string) error {
	_, inAll := top["gpus"]
	_, gres := top["gres"]
	if _, own := o.Noted["gres"]; inAll || gres && own && !noted(o.Noted, "gpus", "gpus-per-node", "gpus-per-task") {
		return o.Flags.Set("gpus", "0")
	}
	return nil
}

// noted reports whether at least one of the named options is recorded.
func noted(in map[string]string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, is := in[name]; return is })
}

// noteOver records the options in `top`. Before this, it removes each recorded option that an option in `top` replaces.
func (o *Options) noteOver(top map[string]string) {
	ofGPUs := []string{"gres", "gpus", "gpus-per-node", "gpus-per-task"}
	if gpus, others, _ := gpusOfGres(top["gres"]); gpus == "" && others != "" && !noted(top, ofGPUs[1:]...) {
		ofGPUs = ofGPUs[:1]
	}
	for _, group := range append(exclusives, ofGPUs) {
		if noted(top, group...) {
			for _, name := range group {
				delete(o.Noted, name)
			}
		}
	}
	maps.Copy(o.Noted, top)
}

// contradiction returns an error if some of the given options of sbatch exclude one another. The real sbatch refuses
// them too.
func (o *Options) contradiction() error {
	defer func() { o.gpus, o.inAll = nil, "" }()
	for _, only := range exclusives {
		said := slices.DeleteFunc(slices.Clone(only), func(name string) bool {
			_, is := o.Noted[name]
			return !is
		})
		if len(said) > 1 {
			return errors.New("--" + strings.Join(said, " and --") + " cannot be used together: leave one out")
		}
	}
	return nil
}
