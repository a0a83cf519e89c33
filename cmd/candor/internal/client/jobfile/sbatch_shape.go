package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
			return fmt.Errorf("--exclusive=%s is not possible here: a node is shared with all or with none: use --exclusive", value)
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
	o.Noted[opt.name] = opt.value
	if flag == "gpus" && o.inAll != "" { // setting "gpus" has cleared "gpus-in-all"
		return o.Flags.Set("gpus-in-all", o.inAll)
	}
	return nil
}

// sameGPUs combines the number and type of GPUs with earlier options. It refuses a contradiction.
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

// gpusOfGres returns the number and type of GPUs in a list of generic resources: "gpu", "gpu:2", "gpu:a100",
// "gpu:a100:2". It also returns the list of the other resources.
func gpusOfGres(list string) (said, others string, err error) {
	for part := range strings.SplitSeq(list, ",") {
		name, rest, typed := strings.Cut(strings.TrimPrefix(part, "gres/"), ":")
		switch {
		case strings.EqualFold(part, "none") || part == "NULL" || strings.HasSuffix(part, ":0"):
			continue
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
	return cmp.Or(said, "0"), others, nil
}

// exclusives are groups of sbatch options that cannot be used together.
var exclusives = [][]string{{"mem", "mem-per-cpu", "mem-per-gpu"}, {"cpus-per-task", "cpus-per-gpu"}}

// A script can ask for GPUs for each node or for the whole job. If the options in top ask for the whole job, forgetGPUs
// clears the number for each node.
func (o *Options) forgetGPUs(top map[string]string) error {
	if _, inAll := top["gpus"]; inAll {
		return o.Flags.Set("gpus", "0")
	}
	return nil
}

// noteOver records the options in `top`. First it removes the recorded options that they replace.
func (o *Options) noteOver(top map[string]string) {
	for _, group := range append(exclusives, []string{"gres", "gpus", "gpus-per-node", "gpus-per-task"}) {
		if slices.ContainsFunc(group, func(name string) bool { _, is := top[name]; return is }) {
			for _, name := range group {
				delete(o.Noted, name)
			}
		}
	}
	maps.Copy(o.Noted, top)
}

// contradiction returns an error if options of sbatch are given together that exclude one another. The real sbatch
// refuses them too.
func (o *Options) contradiction() error {
	defer func() { o.gpus, o.inAll = nil, "" }()
	for _, only := range exclusives {
		said := slices.DeleteFunc(slices.Clone(only), func(name string) bool {
			_, is := o.Noted[name]
			return !is
		})
		if len(said) > 1 {
			return errors.New("--" + strings.Join(said, " and --") + " exclude one another: leave one out")
		}
	}
	return nil
}
