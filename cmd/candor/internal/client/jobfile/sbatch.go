package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// readSbatch reads the options of all #SBATCH lines. It returns one error, which names all refused options. It adds one
// warning, which names all ignored options.
func (o *Options) readSbatch(lines []directive, warnings *[]string) error {
	var ignored, bad []string
	of := o // the options of the present component
	for _, d := range lines {
		words, err := splitWords(d.text, true)
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: #SBATCH%s: %v", d.line, d.text, err))
		}
		if isHetjob(words) {
			of, words = o.addComponent(), nil
		}
		for len(words) > 0 {
			var opt sbatchOption
			opt, words = nextOption(words)
			noted, err := of.saySbatch(opt)
			if noted {
				ignored = append(ignored, fmt.Sprintf("%s (line %d)", opt.written, d.line))
			}
			if err != nil {
				bad = append(bad, fmt.Sprintf("line %d: #SBATCH%s: %s", d.line, d.text, Reword(err)))
			}
		}
	}
	for _, of := range append([]*Options{o}, o.components...) {
		if err := cmp.Or(of.contradiction(), of.sayMail(&ignored)); err != nil {
			bad = append(bad, Reword(err))
		}
	}
	if len(bad) > 0 {
		return messages.Errorf(messages.Invalid, "%s", strings.Join(bad, "\n"))
	}
	if len(ignored) > 0 {
		*warnings = append(*warnings, NothingLost+" (see candor help slurm): #SBATCH "+strings.Join(ignored, ", "))
	}
	return nil
}

// NothingLost begins the warning about ignored options.
const NothingLost = "ignored options that the job does not need"

// SayWords sets the sbatch options at the beginning of a command line. It returns the script and its arguments.
func (o *Options) SayWords(words []string) (rest []string, err error) {
	of := o // the options of the present component
	for len(words) > 0 && (words[0] == ":" || len(words[0]) > 1 && words[0][0] == '-') {
		if words[0] == ":" {
			of, words = o.addComponent(), words[1:]
			continue
		}
		if words[0] == "--" {
			words = words[1:]
			break
		}
		var opt sbatchOption
		opt, words = nextOption(words)
		if opt.name == "wrap" {
			if !opt.given && len(words) > 0 { // a word with a dash may be the command, not an option
				opt.value, opt.given, words = words[0], true, words[1:]
			}
			if !opt.given {
				return nil, messages.Errorf(messages.Invalid, "%s needs a value", opt.written)
			}
			o.Noted[opt.name] = opt.value
			continue
		}
		if opt.name == TestOnly && !opt.given {
			o.Noted[TestOnly] = ""
			continue
		}
		if _, err := of.saySbatch(opt); err != nil {
			return nil, messages.Errorf(messages.Invalid, "%s", Reword(err))
		}
	}
	for _, of := range append([]*Options{o}, o.components...) {
		if err := cmp.Or(of.contradiction(), of.sayMail(new([]string))); err != nil {
			return nil, err
		}
	}
	return words, nil
}

// TestOnly is the option of sbatch that asks whether a job would be accepted. It works only on the command line.
const TestOnly = "test-only"

// saySbatch sets one option of sbatch. The result `noted` is true if the option itself does not change the job.
func (o *Options) saySbatch(opt sbatchOption) (noted bool, err error) {
	if err := opt.refusal(); err != nil {
		return false, err
	}
	switch sbatchOptions[opt.name].manner {
	case harmless:
		o.Noted[opt.name] = opt.value
		return true, nil
	case mapped:
		return false, o.sayAlias(opt)
	}
	return false, nil
}

// sbatchOption is one option of a line: the text as written, the long name ("" if unknown), and the value.
type sbatchOption struct {
	written, name, value string
	given                bool
}

// nextOption removes an option and its value from the words: "--x=v", "--x v", "-xv" or "-x v". If the value is
// optional, the next word is the value unless it looks like an option.
func nextOption(words []string) (sbatchOption, []string) {
	first, rest := words[0], words[1:]
	opt := sbatchOption{written: first}
	switch {
	case strings.HasPrefix(first, "--"):
		opt.written, opt.value, opt.given = strings.Cut(first, "=")
		opt.name = sbatchLong(opt.written[2:])
	case len(first) > 2 && first[0] == '-' && strings.IndexByte("HWQv", first[1]) >= 0: // -HW means -H -W
		opt.written, opt.name = first[:2], sbatchShort(first[1])
		return opt, append([]string{"-" + first[2:]}, rest...)
	case len(first) > 1 && first[0] == '-' && first[1] < utf8.RuneSelf:
		opt.written, opt.name = first[:2], sbatchShort(first[1])
		opt.value, opt.given = strings.TrimPrefix(first[2:], "="), len(first) > 2
	}
	if !opt.given && !sbatchOptions[opt.name].alone && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		opt.value, opt.given, rest = rest[0], true, rest[1:]
	}
	return opt, rest
}

// sayAlias sets an option of sbatch through the option of candor that has the same meaning.
func (o *Options) sayAlias(opt sbatchOption) error {
	switch {
	case !opt.given && !sbatchOptions[opt.name].alone:
		return fmt.Errorf("%s needs a value", opt.written)
	case opt.given && opt.value == "" && slices.Contains(mayBeEmpty, opt.name):
		o.said = append(o.said, setting{cmp.Or(nameFlags[opt.name], shapeFlags[opt.name], sbatchOptions[opt.name].text), ""})
		delete(o.Noted, opt.name)
		return nil
	case opt.name == "no-requeue":
		return o.Flags.Set("attempts", "1")
	case opt.name == "nodefile":
		if !strings.Contains(opt.value, "/") {
			opt.value = "./" + opt.value
		}
		return o.Flags.Set("slurm-nodelist", opt.value)
	case opt.name == "input":
		return o.Flags.Set("stdin", opt.value)
	case opt.name == "wait", opt.name == "hold":
		return o.Flags.Set(opt.name, "true")
	case opt.name == "signal" && !strings.Contains(opt.value[:strings.LastIndex(opt.value, ":")+1], "B"): // not to the script's shell
		return o.Flags.Set(opt.name, "C:"+opt.value)
	}
	switch opt.name {
	case "dependency":
		return o.sayDependency(opt.value)
	case "mail-type":
		return o.sayMailType(opt.value)
	case "mail-user":
		o.mailUser = opt.value
		return nil
	}
	if rankFlags[opt.name] != "" {
		return o.Flags.Set(rankFlags[opt.name], opt.value)
	}
	if flag, is := nameFlags[opt.name]; is {
		return o.Flags.Set(flag, opt.value)
	}
	if flag, is := shapeFlags[opt.name]; is {
		return o.sayShape(flag, opt)
	}
	if opt.name == "distribution" {
		return o.Flags.Set(opt.name, opt.value)
	}
	return o.Flags.Set(sbatchOptions[opt.name].text, opt.value)
}

// mayBeEmpty are options that ask for nothing if their value is empty. Templates often leave them empty. On the command
// line, such an option also takes back what the script asks for, as under Slurm.
var mayBeEmpty = []string{"account", "chdir", "comment", "constraint", "exclude", "job-name", "licenses", "nodelist", "qos", "reservation"}

// dependencies maps sbatch's kinds of dependencies to our flags.
var dependencies = map[string]string{"afterok": "after-ok", "afterany": "after", "afternotok": "after-failed", "after": "after-start", "aftercorr": "after-each"}

// sayDependency translates the dependencies of sbatch, such as "afterok:7:8,afterany:9". In "afterok:7?afterok:8", one
// of the two jobs is enough. They replace all earlier ones. An empty text means no dependency.
func (o *Options) sayDependency(text string) error {
	if err := o.Flags.Set("slurm-dependency", ""); err != nil || text == "" {
		return err
	}
	jobs, delay := map[string]string{}, ""
	separator := ","
	if strings.Contains(text, "?") {
		separator = "?"
		if strings.Contains(text, ",") {
			return fmt.Errorf("--dependency %q: a list with commas waits for all its jobs, a list with question marks for one of its jobs: use commas or question marks, not both", text)
		}
	}
	for part := range strings.SplitSeq(text, separator) {
		kind, list, _ := strings.Cut(part, ":")
		kind = strings.ToLower(kind)
		if _, err := strconv.ParseUint(part, 10, 64); err == nil { // the older form: only the number of a job
			kind, list = "afterany", part
		}
		flag := dependencies[kind]
		switch {
		case part == "singleton" && separator == ",":
			if err := o.Flags.Set("slurm-singleton", "true"); err != nil {
				return err
			}
			continue
		case flag == "":
			return fmt.Errorf("--dependency %q: a job can wait for jobs with after, afterany, afterok, afternotok or aftercorr and their numbers, or with singleton, not with %q", text, kind)
		case kind == "aftercorr" && (jobs[flag] != "" || strings.Contains(list, ":")):
			return fmt.Errorf("--dependency %q: the tasks of an array can wait for the tasks of only one other array: wait for whole arrays with afterok", text)
		}
		for id := range strings.SplitSeq(list, ":") {
			if id == "" { // an empty number often comes from an empty shell variable
				return fmt.Errorf("--dependency %q: the number of a job is missing: write it like %s:7:8", text, kind)
			}
			if id, minutes, delayed := strings.Cut(id, "+"); kind == "after" {
				if delayed = delayed && minutes != "0"; jobs[flag] != "" && (delay != "") != delayed || delay != "" && minutes != delay {
					return fmt.Errorf("--dependency %q: the delay is the same after the start of each job: give the same number of minutes everywhere", text)
				} else if delayed {
					delay = minutes
				}
				jobs[flag] = strings.TrimPrefix(jobs[flag]+","+id, ",")
				continue
			}
			jobs[flag] = strings.TrimPrefix(jobs[flag]+","+id, ",")
		}
	}
	if separator == "?" {
		if err := o.Flags.Set("after-any", "true"); err != nil {
			return err
		}
	}
	if delay != "" {
		if _, err := strconv.ParseUint(delay, 10, 32); err != nil {
			return fmt.Errorf("--dependency %q: %q is not a number of minutes", text, delay)
		}
		if err := o.Flags.Set("start-delay", delay); err != nil {
			return err
		}
	}
	for _, flag := range []string{"after", "after-ok", "after-failed", "after-start", "after-each"} {
		if list, said := jobs[flag]; said {
			if err := o.Flags.Set(flag, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// mailTypes maps the values of sbatch's --mail-type to our names of events.
var mailTypes = map[string][]string{
	"NONE": nil, "BEGIN": {job.NotifyStart}, "END": {job.NotifyEnd}, "FAIL": {job.NotifyFailure}, "ALL": job.NotifyEvents,
}

// noMail are values of --mail-type for which Candor sends no e-mail.
var noMail = []string{"TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "REQUEUE", "INVALID_DEPEND", "STAGE_OUT", "ARRAY_TASKS"}

// sayMailType reads a list such as "BEGIN,END". All lists count if the option is repeated, as in sbatch. As in sbatch, a
// list with a known event may also have unknown ones.
func (o *Options) sayMailType(text string) error {
	var events, unknown []string
	anyKnown := false
	for name := range strings.SplitSeq(text, ",") {
		of, known := mailTypes[strings.ToUpper(name)]
		if known = known || name == "" || slices.Contains(noMail, strings.ToUpper(name)); !known {
			unknown = append(unknown, "--mail-type="+name)
		}
		events, anyKnown = append(events, of...), anyKnown || known
	}
	if !anyKnown {
		return fmt.Errorf("--mail-type %q: no e-mail is sent about that: use BEGIN, END, FAIL, ALL or NONE", text)
	}
	o.mailUnknown = append(o.mailUnknown, unknown...)
	for _, event := range events {
		if !slices.Contains(o.mailOn, event) {
			o.mailOn = append(o.mailOn, event)
		}
	}
	return nil
}

// sayMail combines --mail-type and --mail-user into our option --notify. If one is missing or the address is not valid,
// the option is ignored.
func (o *Options) sayMail(ignored *[]string) error {
	*ignored = append(*ignored, o.mailUnknown...)
	switch {
	case len(o.mailOn) > 0 && o.mailUser != "" && !job.MailAddress(o.mailUser): // sbatch takes any text as an address
		*ignored = append(*ignored, fmt.Sprintf("--mail-type (--mail-user %q is no e-mail address)", o.mailUser))
	case len(o.mailOn) > 0 && o.mailUser != "":
		o.Mail = true
		return o.Flags.Set("notify", strings.Join(o.mailOn, ",")+":"+o.mailUser)
	case len(o.mailOn) > 0:
		*ignored = append(*ignored, "--mail-type (without --mail-user)")
	case o.mailUser != "":
		*ignored = append(*ignored, "--mail-user (without --mail-type)")
	}
	return nil
}
