package jobfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

func (f *foreign) pbsOption(name, value string) error {
	switch name {
	case "-A":
		f.say("account", value)
	case "-w":
		f.say("chdir", value)
	case "-W":
		var jobs []string
		for part := range strings.SplitSeq(value, ",") {
			switch key, is, given := strings.Cut(part, "="); {
			case key == "depend":
				jobs = append(jobs, is)
			case !given && len(jobs) > 0: // depend=afterok:7,afterany:8
				jobs = append(jobs, part)
			case key == "block" && is == "true":
				f.said = append(f.said, "--wait")
			case slices.Contains([]string{"group_list", "umask", "sandbox", "x", "run_count"}, key):
				f.unneeded = append(f.unneeded, "-W "+key)
			default:
				return fmt.Errorf("-W %s is not possible here: leave it out", key)
			}
		}
		if len(jobs) == 0 {
			return nil
		}
		for i, list := range jobs {
			if jobs[i] = jobNumbers(list); !strings.Contains(jobs[i], ":") || strings.Contains(jobs[i]+":", "::") { // the job must not start at once: often the number is missing because a variable was empty
				return fmt.Errorf("-W depend=%s: names no job to wait for: write it like depend=afterok:7, or leave it out", list)
			}
		}
		f.say("dependency", strings.Join(jobs, ","))
	default:
		return fmt.Errorf("%s is not possible here: leave it out, or use lines of #SBATCH", name)
	}
	return nil
}

// jobNumbers translates a dependency of PBS, such as afterokarray:7[].server, to sbatch's form, such as afterok:7.
func jobNumbers(list string) string {
	words := strings.Split(list, ":")
	if kind, ofArray := strings.CutSuffix(words[0], "array"); ofArray {
		words[0] = strings.TrimSuffix(kind, "start") // afterstartarray waits for the start; sbatch's name for this is after
	}
	for i := range words {
		words[i], _, _ = strings.Cut(words[i], ".")
		words[i] = strings.TrimSuffix(words[i], "[]")
	}
	return strings.Join(words, ":")
}

func whole(key, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("-l %s=%s: must be a whole number from 1", key, value)
	}
	return n, nil
}

func (f *foreign) pbsResource(key, value string) (err error) {
	switch key {
	case "nodes", "select":
		return f.chunks(key, value)
	case "ncpus", "mppdepth":
		f.threads, err = whole(key, value)
	case "procs", "mppwidth": // the names with mpp are for machines of Cray
		f.slots, err = whole(key, value)
	case "mppnppn":
		f.say("ntasks-per-node", value)
	case "mem":
		f.memory, err = memoryOf(value)
	case "vmem":
		if f.memory == 0 {
			f.memory, err = memoryOf(value)
		}
	case "pmem":
		f.perSlot, err = memoryOf(value)
	case "place":
		if strings.HasPrefix(value, "scatter") {
			f.scatter = true
		}
		if strings.Contains(value, "excl") && !strings.Contains(value, "group=") {
			f.said = append(f.said, "--exclusive")
		}
	case "feature":
		f.labels = append(f.labels, strings.ReplaceAll(value, ":", "&"))
	case "naccesspolicy":
		if value = strings.ToLower(value); value == "singlejob" || value == "singletask" {
			f.said = append(f.said, "--exclusive")
		} else {
			f.unneeded = append(f.unneeded, "-l "+key)
		}
	case "host":
		f.say("nodelist", value)
	case "jobfs", "scratch":
		f.say("tmp", strings.TrimSuffix(strings.ToUpper(value), "B"))
	case "cput", "pcput", "pvmem", "file", "nice", "qos", "filesystems", "storage", "wd", "io", "software":
		f.unneeded = append(f.unneeded, "-l "+key)
	case "gres": // as Moab writes it: gres=matlab:2+ansys
		f.others = append(f.others, strings.FieldsFunc(value, func(r rune) bool { return r == '+' || r == '%' })...)
	default:
		f.other(key, value)
	}
	return err
}

// gpuModes are words after Torque's gpus=1 that say how processes share a GPU.
var gpuModes = []string{"shared", "exclusive", "exclusive_thread", "exclusive_process", "default", "reseterr"}

// chunks reads the nodes of a PBS job: nodes=2:ppn=4 or select=2:ncpus=8:mpiprocs=4:mem=16gb.
func (f *foreign) chunks(key, value string) (err error) {
	if strings.Contains(value, "+") {
		return fmt.Errorf("-l %s=%s: all nodes of a job must have the same resources here: submit one job for each part of the list", key, value)
	}
	count, rest, _ := strings.Cut(value, ":")
	if key == "nodes" && strings.Trim(count, "0123456789") != "" && messages.ValidName(count) { // nodes=cu01:ppn=10 names a node
		f.say("nodelist", count)
		count = "1"
	}
	if f.nodes, err = whole(key, count); err != nil {
		return err
	}
	cpus, ranks := 0, 0
	f.spread = key == "select"
	for part := range strings.SplitSeq(rest, ":") {
		switch name, is, given := strings.Cut(part, "="); {
		case part == "":
		case name == "ppn", name == "mpiprocs":
			ranks, err = whole(name, is)
		case name == "ncpus":
			cpus, err = whole(name, is)
		case name == "ompthreads":
			_, err = whole(name, is)
		case name == "mem":
			f.perNode = true
			f.memory, err = memoryOf(is)
		case name == "gpus", name == "ngpus":
			f.spread = false // PBS gives GPUs for each node, so nodes cannot have several chunks
			f.say("gpus-per-node", is)
		case name == "host", name == "vnode":
			f.say("nodelist", is)
		case name == "gpu_type", name == "gpu_model":
			f.labels = append(f.labels, strings.ToLower(is))
		case strings.HasPrefix(name, "scratch"):
			f.say("tmp", strings.TrimSuffix(strings.TrimSuffix(is, "b"), "B"))
		case !given && slices.Contains(gpuModes, name):
		case !given, strings.EqualFold(is, "true"):
			f.labels = append(f.labels, name)
		case !strings.EqualFold(is, "false"):
			f.labels = append(f.labels, is)
		}
		if err != nil {
			return err
		}
	}
	f.spread = f.spread && cpus > 0 // chunks without a number of processors are whole nodes
	if f.slots = max(ranks, 1); cpus > 0 {
		f.threads = max(1, cpus/f.slots)
	}
	return nil
}

func (f *foreign) sgeOption(name, value string) error {
	switch name {
	case "-pe":
		environment, count, _ := strings.Cut(value, " ")
		count, _, _ = strings.Cut(count, "-")
		n, err := whole("-pe", count)
		if err != nil {
			return err
		}
		f.parallel = environment
		if sharesMemory(environment) {
			f.threads = n
		} else {
			f.slots = n
		}
	case "-tc":
		f.most = "%" + value
	case "-hold_jid":
		if strings.Trim(value, "0123456789,") != "" || strings.Contains(","+value+",", ",,") {
			return fmt.Errorf("-hold_jid %s: names of jobs are not possible here: give their numbers", value)
		}
		f.holds = append(f.holds, "afterany:"+strings.ReplaceAll(value, ",", ":"))
	case "-hold_jid_ad":
		f.holds = append(f.holds, "aftercorr:"+value)
	case "-sync":
		if strings.HasPrefix(value, "y") {
			f.said = append(f.said, "--wait")
		}
	default:
		return fmt.Errorf("%s is not possible here: leave it out, or use lines of #SBATCH", name)
	}
	return nil
}

// In Grid Engine, each site chooses the names of its parallel environments. sharesMemory guesses from the name whether
// an environment puts all slots of a job on one node.
func sharesMemory(environment string) bool {
	environment = strings.ToLower(environment)
	return slices.ContainsFunc([]string{"smp", "omp", "thread", "share", "shm", "serial", "multicore", "local", "onenode", "single"}, func(word string) bool { return strings.Contains(environment, word) })
}

// sgeResource reads one resource of a line "#$ -l". Grid Engine gives memory for each slot.
func (f *foreign) sgeResource(key, value string) (err error) {
	switch key {
	case "h_vmem", "s_vmem", "mem_free", "tmem", "virtual_free", "vf", "mem", "rmem", "h_rss", "h_data", "m_mem_free", "mem_requested", "ram_free", "mem_token":
		n, err := memoryOf(value)
		f.perSlot = max(f.perSlot, n)
		return err
	case "hostname", "h":
		f.say("nodelist", value)
	case "qname", "q":
		f.queues(value)
	case "exclusive", "excl":
		f.said = append(f.said, "--exclusive")
	case "s_rt", "h_cpu", "s_cpu", "h_stack", "h_fsize", "arch", "os", "tmpfs", "scratch", "tmpspace", "highp", "h_core":
		f.unneeded = append(f.unneeded, "-l "+key)
	default:
		f.other(key, value)
	}
	return nil
}
