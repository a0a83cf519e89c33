package jobfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// SplitQsub divides the words of qsub's command line into options, and the script with its arguments.
func SplitQsub(words []string) (options, rest []string) {
	i := 0
	for i < len(words) && len(words[i]) > 1 && words[i][0] == '-' {
		switch name := words[i]; {
		case name == "--":
			return words[:i], words[i+1:]
		case name == "-pe":
			i += 3
		case attached(name):
			i++
		case slices.Contains(bareOptions[pbs], name) || slices.Contains(bareOptions[gridEngine], name):
			i++
		default:
			i += 2
		}
	}
	i = min(i, len(words))
	return words[:i], words[i:]
}

// gridEngineOptions are options that PBS does not have.
var gridEngineOptions = []string{"-ac", "-b", "-binding", "-ckpt", "-clear", "-cwd", "-hard", "-hold_jid", "-hold_jid_ad", "-js", "-notify", "-now", "-pe", "-shell", "-soft", "-sync", "-tc", "-terse", "-verify", "-wd"}

// attached reports whether a word is an option of PBS with its value, as in -lwalltime=60 or -joe.
func attached(word string) bool {
	return len(word) > 2 && word[0] == '-' && strings.IndexByte("aAcCdDeIjJklmMNopPqrRSStuvwW", word[1]) >= 0 && !slices.Contains(gridEngineOptions, word)
}

// Command returns the script that runs a command with its arguments, for qsub -b y.
func Command(words []string) []byte {
	line := "#!/bin/sh\nexec"
	for _, w := range words {
		line += " " + Quote(w)
	}
	return []byte(line + "\n")
}

// ForQsub adds the options of qsub's command line to a script, as the last directive. Directives in the script show
// whether it is for PBS or Grid Engine. For a script without directives, ForQsub looks at the options. If one of them
// exists only in Grid Engine, the script is for Grid Engine, otherwise for PBS.
func ForQsub(source []byte, options []string) (script []byte, isGridEngine bool, err error) {
	text := withoutPrelude(string(source))
	if !strings.HasPrefix(text, "#!") {
		text = "#!/bin/bash\n" + text
	}
	found, err := scan(text)
	if err != nil {
		return nil, false, err
	}
	system := found.system()
	switch {
	case system != "":
	case len(found.candor)+len(found.sbatch)+len(found.pbs)+len(found.sge) > 0:
		return nil, false, messages.Errorf(messages.Invalid, "the script also has lines that qsub does not read: use sbatch")
	case slices.ContainsFunc(options, func(o string) bool { return slices.Contains(gridEngineOptions, o) }) || forGridEngine(withoutDocuments(text)):
		system = gridEngine
	default:
		system = pbs
	}
	first := markers[system] + " -V"
	line := first
	for _, o := range options {
		if strings.Contains(o, "\n") {
			return nil, false, messages.Errorf(messages.Invalid, "%q: an option of qsub must be on one line", o)
		}
		line += " " + Quote(o)
	}
	var out strings.Builder
	said, late := false, false // late: lines of Grid Engine after the first command count too
	for each := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(each); !said && trimmed != "" && trimmed[0] != '#' {
			if late = system == gridEngine && forGridEngine(text[out.Len():]); !late {
				first = line
			}
			out.WriteString(first + "\n")
			said = true
		}
		out.WriteString(each)
	}
	if late && line != first { // the options of the command line come after all options in the script
		if !strings.HasSuffix(text, "\n") {
			out.WriteByte('\n')
		}
		out.WriteString(line + "\n")
	}
	return []byte(out.String()), system == gridEngine, nil
}

// forGridEngine reports whether a script has a line with options for Grid Engine, such as "#$ -N name".
func forGridEngine(script string) bool {
	for line := range strings.Lines(script) {
		if rest, ok := cutMarker(line, markers[gridEngine]); ok && strings.HasPrefix(strings.TrimLeft(rest, " \t"), "-") {
			return true
		}
	}
	return false
}

// hereDocument matches the begin of a here-document: text within a script that is no part of the script's own commands.
var hereDocument = regexp.MustCompile(`^[^#]*<<-?[ \t]*["'\\]?([A-Za-z_]\w*)`)

// withoutDocuments returns a script without its here-documents. They may be scripts for another system.
func withoutDocuments(script string) string {
	var own []string
	lines := strings.Split(script, "\n")
	for i := 0; i < len(lines); i++ {
		own = append(own, lines[i])
		if m := hereDocument.FindStringSubmatch(lines[i]); m != nil {
			end := slices.IndexFunc(lines[i+1:], func(line string) bool { return strings.TrimLeft(line, "\t") == m[1] })
			i += max(0, end+1)
		}
	}
	return strings.Join(own, "\n")
}
