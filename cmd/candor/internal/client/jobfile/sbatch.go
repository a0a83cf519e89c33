package jobfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// sbatchNames maps the options of sbatch that have a meaning here to ours.
// --ntasks, --requeue and --no-requeue are read apart.
var sbatchNames = map[string]string{
	"job-name": "name", "array": "array", "time": "time", "account": "project", "partition": "market",
	"mem": "memory", "mem-per-cpu": "memory", "comment": "comment",
	"chdir": "chdir", "export": "export", "ntasks": "ntasks", "wait": "wait", "requeue": "requeue", "no-requeue": "no-requeue",
}

// sbatchShort maps the short options of sbatch to its long ones.
var sbatchShort = map[byte]string{
	'J': "job-name", 'a': "array", 't': "time", 'A': "account", 'p': "partition", 'D': "chdir", 'n': "ntasks", 'W': "wait",
}

// sbatchBool are those that take no value.
var sbatchBool = map[string]bool{"wait": true, "requeue": true, "no-requeue": true}

// readSbatch says the options of all #SBATCH lines, and adds one warning that
// names those without a meaning here.
func (o *Options) readSbatch(lines []directive, warnings *[]string) error {
	var ignored []string
	for _, d := range lines {
		words, err := splitWords(d.text)
		if err != nil {
			return messages.Errorf(messages.Invalid, "line %d: #SBATCH%s: %v", d.line, d.text, err)
		}
		for len(words) > 0 {
			var opt sbatchOption
			opt, words = nextOption(words)
			if sbatchNames[opt.name] == "" {
				ignored = append(ignored, fmt.Sprintf("%s (line %d)", opt.written, d.line))
				continue
			}
			if err := o.sayAlias(opt); err != nil {
				return messages.Errorf(messages.Invalid, "line %d: #SBATCH%s: %s", d.line, d.text, Reword(err))
			}
		}
	}
	if len(ignored) > 0 {
		*warnings = append(*warnings, "ignored, having no meaning here: #SBATCH "+strings.Join(ignored, ", "))
	}
	return nil
}

// sbatchOption is one option of a line: as written, its long name ("" if
// unknown), and its value.
type sbatchOption struct {
	written, name, value string
	given                bool
}

// nextOption takes an option and its value off the words: "--x=v", "--x v",
// "-xv" or "-x v". What follows an unknown option and does not look like one
// is taken for its value.
func nextOption(words []string) (sbatchOption, []string) {
	first, rest := words[0], words[1:]
	opt := sbatchOption{written: first}
	switch {
	case strings.HasPrefix(first, "--"):
		opt.written, opt.value, opt.given = strings.Cut(first, "=")
		opt.name = opt.written[2:]
	case len(first) > 1 && first[0] == '-':
		opt.written, opt.name = first[:2], sbatchShort[first[1]]
		opt.value, opt.given = strings.TrimPrefix(first[2:], "="), len(first) > 2
	}
	if !opt.given && !sbatchBool[opt.name] && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		opt.value, opt.given, rest = rest[0], true, rest[1:]
	}
	return opt, rest
}

// sayAlias says one option that has a meaning here.
func (o *Options) sayAlias(opt sbatchOption) error {
	switch {
	case !opt.given && !sbatchBool[opt.name]:
		return fmt.Errorf("%s needs a value", opt.written)
	case opt.name == "requeue":
		return nil // tasks are tried again by default
	case opt.name == "no-requeue":
		return o.Flags.Set("attempts", "1")
	case opt.name == "wait":
		return o.Flags.Set("wait", "true")
	case opt.name == "ntasks":
		n, err := strconv.Atoi(opt.value)
		if err != nil || n < 1 {
			return fmt.Errorf("%s %q: must be a whole number from 1 on", opt.written, opt.value)
		}
		o.ntasks = n
		return nil
	}
	return o.Flags.Set(sbatchNames[opt.name], opt.value)
}
