package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// foreign has what the directives of a script for PBS or Grid Engine ask for.
type foreign struct {
	system   string // PBS or SGE
	said     []string
	unneeded []string // options that have no effect here
	warnings []string
	export   []string // variables that the option -v names

	parallel              string   // name of a parallel environment; "" means none
	nodes, slots, threads int      // number of ranks on each node, and of processors of each rank; 0 means that the script does not set it
	spread                bool     // nodes is a number of chunks; one node may have several chunks
	memory, perSlot       int64    // bytes, for the whole job and for each slot; 0 means that the script does not set it
	perNode               bool     // the field memory is for each node, not for the whole job
	scatter               bool     // each chunk is on a node of its own
	labels                []string // all labels that the nodes must have
	holds                 []string // jobs that the job waits for, as in the option --dependency
	others                []string // resources whose meaning the site's configuration says, as in the option --gres
	join                  bool     // both outputs go to one file: to out, or to errs if joinErrs is true
	joinErrs              bool
	out, errs             string // files for standard output and standard error
	array, most           string
	mail                  string
	home                  string // home directory of the user who submits
}

const (
	pbs        = "PBS"
	gridEngine = "SGE"
)

func (o *Options) translate(system string, lines []directive, job *Job) error {
	f := &foreign{system: system}
	f.home, _ = o.lookup("HOME")
	for _, line := range lines {
		words, err := splitWords(line.text, false)
		for err == nil && len(words) > 0 {
			words, err = f.option(words)
		}
		if err != nil {
			return messages.Errorf(messages.Invalid, "line %d: %s%s: %s", line.line, markers[system], line.text, Reword(err))
		}
	}
	words, err := f.words()
	if err != nil {
		return err
	}
	if rest, err := o.SayWords(words); err != nil || len(rest) > 0 {
		return cmp.Or(err, error(messages.Errorf(messages.Invalid, "%s: %q is no option", markers[system], rest)))
	}
	job.Warnings = append(job.Warnings, f.warnings...)
	if len(f.unneeded) > 0 {
		job.Warnings = append(job.Warnings, NothingLost+": "+markers[system]+" "+strings.Join(f.unneeded, ", "))
	}
	job.Slurm, job.system, job.parallel, job.home = true, system, f.parallel, f.home
	job.Usual, job.inDirectory = f.files()
	return nil
}

func (j *Job) Foreign() bool { return j.system != "" }

var markers = map[string]string{pbs: "#PBS", gridEngine: "#$"}

func (f *foreign) say(option, value string) { f.said = append(f.said, "--"+option+"="+value) }

var bareOptions = map[string][]string{
	pbs:        {"-V", "-h", "-X", "-I", "-z", "-f", "-x"},
	gridEngine: {"-V", "-h", "-cwd", "-notify", "-terse", "-clear", "-verify"},
}

// withoutEffect lists the options of PBS and Grid Engine that have no effect here.
var withoutEffect = map[string][]string{
	pbs:        {"-V", "-X", "-z", "-S", "-k", "-p", "-c", "-R", "-f", "-x", "-C"},
	gridEngine: {"-V", "-cwd", "-notify", "-clear", "-S", "-p", "-R", "-b", "-w", "-binding", "-A", "-ac", "-terse", "-shell", "-ckpt", "-now", "-js"},
}

// sameOptions maps options that both systems have to sbatch's names for them.
var sameOptions = map[string]string{"-N": "job-name", "-P": "account", "-M": "mail-user", "-wd": "chdir", "-d": "chdir"}

// option reads the first option of a line, and returns the words after it.
func (f *foreign) option(words []string) ([]string, error) {
	name, value := words[0], ""
	words = words[1:]
	if f.system == pbs && attached(name) {
		name, words = name[:2], append([]string{name[2:]}, words...)
	}
	switch {
	case name == "-pe" && len(words) > 1:
		value, words = words[0]+" "+words[1], words[2:]
	case !slices.Contains(bareOptions[f.system], name):
		if len(words) == 0 || name[0] != '-' {
			return nil, fmt.Errorf("%s: is not an option, or its value is missing", name)
		}
		value, words = words[0], words[1:]
	}
	if slices.Contains(withoutEffect[f.system], name) {
		if f.unneeded = append(f.unneeded, name); name == "-V" || name == "-cwd" { // every job has these two effects, so there is nothing to say
			f.unneeded = f.unneeded[:len(f.unneeded)-1]
		}
		return words, nil
	}
	if known, err := f.common(name, value); known {
		return words, err
	}
	if f.system == pbs {
		return words, f.pbsOption(name, value)
	}
	return words, f.sgeOption(name, value)
}

func (f *foreign) common(name, value string) (known bool, err error) {
	switch long := sameOptions[name]; {
	case long != "":
		f.say(long, value)
	case name == "-q":
		f.queues(value)
	case name == "-v":
		f.export = append(f.export, value)
	case name == "-o":
		f.out = f.path(value)
	case name == "-e":
		f.errs = f.path(value)
	case name == "-j":
		f.join, f.joinErrs = value != "n", value == "eo"
	case name == "-m":
		f.mail = value
	case name == "-h":
		f.said = append(f.said, "--hold")
	case name == "-r":
		if value == "n" || value == "no" {
			f.said = append(f.said, "--no-requeue")
		}
	case name == "-t", name == "-J" && f.system == pbs:
		f.array = value
	case name == "-l":
		for part := range strings.SplitSeq(value, ",") {
			key, is, _ := strings.Cut(part, "=")
			if err := f.resource(key, is); err != nil {
				return true, err
			}
		}
	default:
		return false, nil
	}
	return true, nil
}

// queues reads the queues of a job. Grid Engine allows a host after each queue, as in all.q@node1.
func (f *foreign) queues(value string) {
	var queues, hosts []string
	for each := range strings.SplitSeq(value, ",") {
		queue, host, _ := strings.Cut(each, "@")
		if !slices.Contains(queues, queue) {
			queues = append(queues, queue)
		}
		if host != "" {
			hosts = append(hosts, host)
		}
	}
	f.say("partition", strings.Join(queues, ","))
	switch {
	case f.system == pbs || len(hosts) == 0: // in PBS, the name after "@" is a server, not a node
	case len(hosts) == 1 && messages.ValidName(hosts[0]):
		f.say("nodelist", hosts[0])
	default:
		f.warnings = append(f.warnings, "-q "+value+": the job may run on any node of "+strings.Join(queues, " and ")+": to choose nodes, use -l hostname or labels")
	}
}

// path removes the host from a file's name, and replaces the job's number and name with sbatch's patterns.
func (f *foreign) path(text string) string {
	if _, path, hosted := strings.Cut(text, ":"); hosted {
		text = path
	}
	return strings.NewReplacer("$PBS_JOBID", "%j", "${PBS_JOBID}", "%j", "$PBS_JOBNAME", "%x", "${PBS_JOBNAME}", "%x", "^array_index^", "%a",
		"$JOB_ID", "%A", "$TASK_ID", "%a", "$JOB_NAME", "%x", "$USER", "%u", "$HOME", f.home, "$HOSTNAME", "%N").Replace(text)
}

func (f *foreign) resource(key, value string) (err error) {
	switch {
	case key == "walltime" || key == "h_rt" || key == "s_rt" && !slices.ContainsFunc(f.said, func(s string) bool { return strings.HasPrefix(s, "--time=") }):
		f.say("time", seconds(value))
	case slices.Contains([]string{"gpu", "gpus", "ngpus", "gpu_card"}, strings.ToLower(key)):
		f.say("gpus-per-node", value)
	case f.system == pbs:
		return f.pbsResource(key, value)
	default:
		return f.sgeResource(key, value)
	}
	return nil
}

// The method `other` adds a resource that only the site knows, such as fluent=1, scratch_ssd=20gb or highmem.
func (f *foreign) other(key, value string) {
	f.others = append(f.others, strings.TrimSuffix(key+":"+strings.TrimSuffix(strings.ToUpper(value), "B"), ":"))
}

// seconds rewrites a time for sbatch. In PBS and Grid Engine, a number without a colon means seconds; in sbatch it
// means minutes. PBS also writes days with a colon: 1:12:00:00 means 1-12:00:00.
func seconds(text string) string {
	if strings.Count(text, ":") == 3 {
		return strings.Replace(text, ":", "-", 1)
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}

// memoryOf reads an amount of memory, such as 16gb or 16G, in bytes.
func memoryOf(text string) (int64, error) {
	lower := strings.TrimSuffix(strings.ToLower(text), "b")
	unit := int64(1)
	if n := len(lower); n > 0 {
		if i := strings.IndexByte("kmgt", lower[n-1]); i >= 0 {
			unit, lower = 1<<(10*(i+1)), lower[:n-1]
		}
	}
	n, err := strconv.ParseFloat(lower, 64)
	if err != nil || !(n > 0 && n < 1<<20) && unit > 1 || n > 1<<50 || n <= 0 {
		return 0, fmt.Errorf("%q is not an amount of memory, such as 16gb", text)
	}
	return int64(n * float64(unit)), nil
}

// words returns options of sbatch with the same meaning as the directives of the other batch system.
func (f *foreign) words() (out []string, err error) {
	out = f.said
	add := func(option string, value any) { out = append(out, fmt.Sprintf("--%s=%v", option, value)) }
	if f.spread = f.spread && !f.scatter; len(f.labels) > 0 {
		add("constraint", strings.Join(f.labels, "&"))
	}
	if len(f.holds) > 0 {
		add("dependency", strings.Join(f.holds, ","))
	}
	if len(f.others) > 0 {
		add("gres", strings.Join(f.others, ","))
	}
	nodes, slots, threads := max(f.nodes, 1), max(f.slots, 1), max(f.threads, 1)
	switch {
	case f.spread && nodes > 1:
		add("ntasks", nodes*slots)
	case f.nodes > 0:
		add("nodes", nodes)
		add("ntasks-per-node", slots)
	case f.slots > 0:
		add("ntasks", slots)
	}
	if f.threads > 0 {
		add("cpus-per-task", threads)
	}
	mebi := func(bytes int64) string { return fmt.Sprintf("%dM", max(1, (bytes+1<<20-1)>>20)) }
	switch {
	case f.perSlot > 0:
		add("mem-per-cpu", mebi(f.perSlot))
	case f.memory == 0:
	case f.spread && nodes > 1:
		whole := f.memory
		if f.perNode {
			whole *= int64(nodes)
		}
		add("mem-per-cpu", mebi(whole/int64(nodes*slots*threads)))
	case f.perNode:
		add("mem", mebi(f.memory))
	case f.nodes == 0 && f.slots > 1:
		add("mem-per-cpu", mebi(f.memory/int64(slots*threads)))
	default:
		add("mem", mebi(f.memory/int64(nodes)))
	}
	if len(f.export) > 0 {
		add("export", "ALL,"+strings.Join(f.export, ","))
	}
	if f.array != "" {
		add("array", f.array+f.most)
	}
	return out, f.mails(add)
}

// files returns the paths of the output files that PBS or Grid Engine would choose. Element 0 of both results is for
// standard output, and element 1 for standard error. usual has the paths. usual[1] is "" if one file gets both outputs.
// If the user named a directory for an output, `within` has the file's name in this directory.
func (f *foreign) files() (usual, within [2]string) {
	number := "%A"
	if f.array != "" {
		number = map[string]string{pbs: "%A-%a", gridEngine: "%A.%a"}[f.system]
	}
	said := [2]string{f.out, f.errs}
	letters := "oe"
	if f.joinErrs {
		said[0], letters = f.errs, "ee"
	}
	for i, said := range said {
		standard := "%x." + letters[i:i+1] + number
		switch {
		case i == 1 && f.join:
		case said == "", said == ".":
			usual[i] = standard
		case strings.HasSuffix(said, "/"):
			usual[i] = said + standard
		default:
			usual[i], within[i] = said, standard
		}
	}
	return usual, within
}

func (f *foreign) mails(add func(string, any)) error {
	types := map[rune]string{'b': "BEGIN", 'e': "END", 'a': "FAIL", 's': "NONE", 'n': "NONE", 'j': "NONE", 'f': "FAIL", 'p': "NONE"}
	var all []string
	for _, letter := range f.mail {
		if types[letter] == "" {
			return messages.Errorf(messages.Invalid, "-m %s: use letters of a, b, e and n", f.mail)
		}
		if kind := types[letter]; kind != "NONE" && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	if f.mail != "" {
		add("mail-type", cmp.Or(strings.Join(all, ","), "NONE"))
	}
	return nil
}
