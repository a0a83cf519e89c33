package jobfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type manner uint8

const (
	refused  manner = iota // the option would change when, where or whether a job runs
	mapped                 // Candor has the same option, perhaps under another name
	harmless               // the option has no effect here; the user gets a note
)

type sbatchRule struct {
	short byte // one letter; 0 means the option has no short name
	manner
	// The meaning of the field `text` depends on what happens to the option (see manner). If the option is mapped, it
	// is the name of Candor's option. If the option is refused, it says what to write instead. If the option is
	// harmless, it says why nothing is lost.
	text string
	// If alone is true, the option takes no value, or an optional value that must follow "=".
	alone bool
	// This list has the values of the option that are accepted, because they ask for nothing that the site cannot do.
	// With any other value, the site refuses the option.
	but []string
}

const (
	inTheNode = "the ranks on a node share the processors of the job"
	oneSystem = "the site knows nothing of sockets and cores"
	noMap     = "the site does not know which nodes are near one another"
	noImages  = "tasks do not run in container images: start the container in the script"
	slotsAre  = "a task asks for processors, memory and GPUs: use --cpus-per-task, --mem and --gres=gpu"
	nodesAre  = "nodes are chosen by their labels and names: use --constraint, --nodelist and --exclude"
	noSpecial = "no processors are reserved for the system"
)

var sbatchOptions = map[string]sbatchRule{
	"account":             {short: 'A', manner: mapped, text: "project"},
	"array":               {short: 'a', manner: mapped, text: "array"},
	"begin":               {short: 'b', manner: mapped, text: "begin"},
	"chdir":               {short: 'D', manner: mapped, text: "chdir"},
	"workdir":             {manner: mapped, text: "chdir"},
	"dependency":          {short: 'd', manner: mapped, text: "after, after-ok"},
	"export":              {manner: mapped, text: "export"},
	"job-name":            {short: 'J', manner: mapped, text: "name"},
	"mem":                 {manner: mapped, text: "memory"},
	"mem-per-cpu":         {manner: mapped, text: "memory (times --cpus)"},
	"no-requeue":          {manner: mapped, text: "attempts 1", alone: true},
	"partition":           {short: 'p', manner: mapped, text: "market"},
	"time":                {short: 't', manner: mapped, text: "time"},
	"wait":                {short: 'W', manner: mapped, text: "wait", alone: true},
	"hold":                {short: 'H', manner: mapped, text: "hold", alone: true},
	"signal":              {manner: mapped, text: "signal"},
	"requeue":             {manner: harmless, text: "a task whose node fails runs again anyway", alone: true},
	"acctg-freq":          {manner: harmless, text: "usage is always measured"},
	"comment":             {manner: mapped, text: "comment"},
	"delay-boot":          {manner: harmless, text: "nodes are not booted for jobs"},
	"error":               {short: 'e', manner: harmless, text: "candor logs --stderr shows the errors"},
	"extra":               {manner: harmless, text: "only a remark"},
	"ignore-pbs":          {manner: harmless, text: "#PBS lines are not read if there are #SBATCH lines", alone: true},
	"mail-type":           {manner: mapped, text: "notify"},
	"mail-user":           {manner: mapped, text: "notify"},
	"no-kill":             {short: 'k', manner: harmless, text: "a job ends when one of its nodes fails", alone: true},
	"open-mode":           {manner: harmless, text: "each attempt has its own output"},
	"output":              {short: 'o', manner: harmless, text: "candor logs shows the output"},
	"oversubscribe":       {short: 's', manner: harmless, text: "nodes are always shared", alone: true},
	"share":               {manner: harmless, text: "nodes are always shared", alone: true},
	"parsable":            {manner: harmless, text: "use --json on the command line", alone: true},
	"profile":             {manner: harmless, text: "candor job and tasks show what was used"},
	"quiet":               {short: 'Q', manner: harmless, text: "the option changes only what sbatch prints", alone: true},
	"spread-job":          {manner: harmless, text: "ranks are divided evenly over the nodes", alone: true},
	"use-min-nodes":       {manner: harmless, text: "a job gets as few nodes as possible", alone: true},
	"verbose":             {short: 'v', manner: harmless, text: "the option changes only what sbatch prints", alone: true},
	"wait-all-nodes":      {manner: harmless, text: "a job begins when all its nodes are free"},
	"wckey":               {manner: harmless, text: "only a remark"},
	"kill-on-invalid-dep": {text: "a job always ends if its --after-ok cannot be met", but: []string{"yes"}},

	"nodes":              {short: 'N', manner: mapped, text: "nodes"},
	"ntasks":             {short: 'n', manner: mapped, text: "ntasks"},
	"ntasks-per-node":    {manner: mapped, text: "ntasks-per-node"},
	"tasks-per-node":     {manner: mapped, text: "ntasks-per-node"},
	"ntasks-per-socket":  {manner: harmless, text: inTheNode},
	"ntasks-per-core":    {manner: harmless, text: inTheNode},
	"ntasks-per-gpu":     {manner: mapped, text: "ntasks (times --gpus)"},
	"cpus-per-task":      {short: 'c', manner: mapped, text: "cpus"},
	"mincpus":            {manner: mapped, text: "cpus (at least)"},
	"nice":               {manner: harmless, text: "the bid decides when a job runs", alone: true},
	"priority":           {manner: harmless, text: "the bid decides when a job runs"},
	"qos":                {short: 'q', manner: mapped, text: "market or --time (as the site says)"},
	"deadline":           {text: "--deadline of sbatch ends a late job: use --deadline in a #CANDOR line, for markets that plan by deadlines"},
	"time-min":           {manner: harmless, text: "time limits are not shortened"},
	"reservation":        {manner: mapped, text: "market or --time (as the site says)"},
	"clusters":           {short: 'M', manner: mapped, text: "site"},
	"cluster":            {manner: mapped, text: "site"},
	"cluster-constraint": {text: "use --site in a #CANDOR line"},
	TestOnly:             {text: "give the option on the command line", alone: true},
	"exclusive":          {manner: mapped, text: "exclusive", alone: true},
	"input":              {short: 'i', manner: mapped, text: "stdin of the script"},
	"wrap":               {text: "write the command in the script"},
	"get-user-env":       {manner: harmless, text: "a task has the environment of the submitting user", alone: true},
	"export-file":        {text: "use --export with the names of the variables"},
	"tmp":                {manner: mapped, text: "disk"},
	"licenses":           {short: 'L', manner: mapped, text: "licenses"},
	"container":          {text: noImages},
	"container-id":       {text: noImages},
	"container-image":    {text: noImages},
	"container-mounts":   {text: noImages},
	"container-name":     {text: noImages},
	"container-workdir":  {text: noImages},
	"bb":                 {text: "there are no burst buffers here"},
	"bbf":                {text: "there are no burst buffers here"},
	"propagate":          {manner: harmless, text: "the node sets the limits: use ulimit in the script", alone: true},
	"uid":                {text: "use candor submit --account"},
	"gid":                {text: "use candor submit --account"},
	"mcs-label":          {text: "accounts are always kept apart"},
	"help":               {short: 'h', text: "give the option on the command line", alone: true},
	"usage":              {text: "give the option on the command line", alone: true},
	"version":            {short: 'V', text: "give the option on the command line", alone: true},
	"reboot":             {text: "nodes are not booted for jobs", alone: true},
	"power":              {manner: harmless, text: "the site does not manage the power of nodes"},
	"resv-ports":         {text: "ports are not reserved", alone: true},
	"network":            {manner: harmless, text: "networks are not reserved"},
	"stepmgr":            {manner: harmless, text: "the agent of the job's first node manages its steps", alone: true},
	"oom-kill-step":      {text: "use --oom in a #CANDOR line", alone: true, but: []string{"1"}},

	"batch":                {text: nodesAre},
	"constraint":           {short: 'C', manner: mapped, text: "constraint"},
	"prefer":               {manner: harmless, text: "no node is preferred: --constraint requires labels"},
	"exclude":              {short: 'x', manner: mapped, text: "exclude"},
	"nodefile":             {short: 'F', manner: mapped, text: "nodelist (in a file)"},
	"nodelist":             {short: 'w', manner: mapped, text: "nodelist"},
	"contiguous":           {manner: harmless, text: noMap, alone: true},
	"switches":             {manner: harmless, text: noMap},
	"segment":              {text: nodesAre},
	"consolidate-segments": {text: nodesAre, alone: true},

	"gres":             {manner: mapped, text: "gpus"},
	"gres-flags":       {manner: harmless, text: "the node says which processors are near a GPU"},
	"gpus":             {short: 'G', manner: mapped, text: "gpus"},
	"gpus-per-node":    {manner: mapped, text: "gpus"},
	"gpus-per-socket":  {text: slotsAre},
	"gpus-per-task":    {manner: mapped, text: "gpus (times --ntasks)"},
	"gpu-bind":         {manner: harmless, text: "a task sees only its own GPUs"},
	"gpu-freq":         {manner: harmless, text: "the node sets the frequencies"},
	"cpus-per-gpu":     {manner: mapped, text: "cpus (times --gpus)"},
	"mem-per-gpu":      {manner: mapped, text: "memory (times --gpus)"},
	"tres-bind":        {text: slotsAre},
	"tres-per-task":    {text: slotsAre},
	"core-spec":        {short: 'S', manner: harmless, text: noSpecial},
	"thread-spec":      {manner: harmless, text: noSpecial},
	"cores-per-socket": {manner: harmless, text: oneSystem},
	"sockets-per-node": {manner: harmless, text: oneSystem},
	"threads-per-core": {manner: harmless, text: oneSystem},
	"extra-node-info":  {short: 'B', manner: harmless, text: oneSystem},
	"hint":             {manner: harmless, text: inTheNode},
	"mem-bind":         {manner: harmless, text: inTheNode},
	"cpu-bind":         {manner: harmless, text: inTheNode},
	"cpu-freq":         {manner: harmless, text: "the node sets the frequencies"},
	"distribution":     {short: 'm', manner: mapped, text: "distribution of the ranks of srun"},
	"overcommit":       {short: 'O', manner: harmless, text: "each rank has processors of its own", alone: true},
}

// sbatchShort returns the long name of a one-letter option of sbatch, or "".
func sbatchShort(short byte) string {
	for name, r := range sbatchOptions {
		if r.short == short {
			return name
		}
	}
	return ""
}

// sbatchLong returns the full name of an option whose name was shortened, as sbatch allows. If no option, or more than
// one, begins with the argument `name`, it returns the argument.
func sbatchLong(name string) string {
	if name == "cpu_bind" || name == "mem_bind" { // older versions of Slurm use these names
		return strings.Replace(name, "_", "-", 1)
	}
	if _, known := sbatchOptions[name]; known || name == "" {
		return name
	}
	found := ""
	for long := range sbatchOptions {
		if strings.HasPrefix(long, name) {
			if found != "" {
				return name
			}
			found = long
		}
	}
	return max(found, name)
}

func (opt *sbatchOption) refusal() error {
	r, known := sbatchOptions[opt.name]
	switch {
	case slices.Contains(hetWords, opt.written):
		return errors.New("write hetjob alone in a line: it begins the next component of a heterogeneous job")
	case !strings.HasPrefix(opt.written, "-"):
		return fmt.Errorf("%q is no option: a value with a space needs quotes, and a comment begins with #", opt.written)
	case !known:
		return fmt.Errorf("%s is no option of sbatch that candor knows: remove it (see candor help slurm)", opt.written)
	case r.manner != refused || opt.given && slices.Contains(r.but, opt.value):
		return nil
	}
	return fmt.Errorf("%s is not possible here: %s", opt.written, r.text)
}

// SbatchTable lists, for the help, how each option of sbatch is treated. Each line has an option and a text.
func SbatchTable() (ours, ignored, without string) {
	for _, name := range slices.Sorted(maps.Keys(sbatchOptions)) {
		r := sbatchOptions[name]
		written := "--" + name
		if r.short != 0 {
			written = fmt.Sprintf("-%c, --%s", r.short, name)
		}
		switch r.manner {
		case mapped:
			ours += fmt.Sprintf("  %-22s --%s\n", written, strings.ReplaceAll(r.text, ", ", ", --"))
		case harmless:
			ignored += fmt.Sprintf("  %-22s %s\n", written, r.text)
		default:
			if len(r.but) > 0 {
				written += "=" + r.but[0]
				without += fmt.Sprintf("  %-22s\n", written)
			}
		}
	}
	return ours, ignored, without
}
