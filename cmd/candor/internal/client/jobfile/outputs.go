package jobfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Files returns the files that a script's prelude opens as standard input, output and error. "" means none or unknown.
// The argument `value` is a function that returns the value of a task's variable.
func Files(script string, value func(variable string) string) (in, out, errs string) {
	line, _, found := strings.Cut(script, cannotCreate)
	at := strings.LastIndex(line, "exec ")
	if !found || at < 0 || strings.Contains(line[at:], "\n") {
		return "", "", ""
	}
	both := false
	for rest := line[at+len("exec "):]; rest != ""; {
		operator := rest[:len(rest)-len(strings.TrimLeft(rest, "2<>&"))]
		if rest = rest[len(operator):]; operator == "2>&" {
			both, rest = true, strings.TrimPrefix(rest, "1")
			continue
		}
		word, after, ok := expand(rest, value)
		if !ok {
			return "", "", ""
		}
		switch strings.TrimSuffix(operator, ">") {
		case "<":
			in = word
		case "", ">":
			out = word
		case "2", "2>":
			errs = word
		}
		rest = strings.TrimPrefix(after, " ")
	}
	if both {
		errs = out
	}
	return in, out, errs
}

// pathVariable has the path of the submitted script. The script needs it because $0 is the path of a copy.
const pathVariable = "CANDOR_SCRIPT"

// PathOf returns the path of a script's submitted file from the prelude, or "" if it is unknown.
func PathOf(script string) string {
	prelude, _, found := strings.Cut(script, cannotCreate)
	_, rest, has := strings.Cut(prelude, " "+pathVariable+"=")
	path, _, ok := expand(rest, func(string) string { return "" })
	if !found || !has || !ok {
		return ""
	}
	return path
}

// padded matches the shell expression that stands for a number with leading zeros in a file name. The method Job.file
// writes this expression.
var padded = regexp.MustCompile(`^\$\(printf %0(\d+)d (.*)\)$`)

// expand reads the first word of a shell command, and replaces the word's variables by their values. The word ends at
// the first space that is not in quotes. The result `rest` is the text after the word. The result `ok` is false if the
// word cannot be read.
func expand(text string, value func(string) string) (word, rest string, ok bool) {
	for text != "" && text[0] != ' ' {
		end := 0
		switch text[0] {
		case '\\':
			if len(text) < 2 {
				return "", "", false
			}
			word, text = word+text[1:2], text[2:]
			continue
		case '\'':
			end = strings.IndexByte(text[1:], '\'')
		case '"':
			end = strings.IndexByte(text[1:], '"')
		default:
			return "", "", false
		}
		if end < 0 {
			return "", "", false
		}
		part := text[1 : end+1]
		if text[0] == '"' {
			if part, ok = valueOf(part, value); !ok {
				return "", "", false
			}
		}
		word, text = word+part, text[end+2:]
	}
	return word, text, true
}

// A user writes placeholders such as %j in the pattern of a file name. The client has replaced them by variables for
// the shell. valueOf returns the text with the values of one task in place of the variables. It returns false if it
// does not know the value of a variable.
func valueOf(text string, value func(string) string) (string, bool) {
	if parts := padded.FindStringSubmatch(text); parts != nil {
		inner, ok := valueOf(parts[2], value)
		n, err := strconv.Atoi(inner)
		width, _ := strconv.Atoi(parts[1])
		return fmt.Sprintf("%0*d", width, n), ok && err == nil
	}
	fill := func(of func(string) string) string {
		return strings.NewReplacer("$((CANDOR_JOB + CANDOR_TASK))", of("SLURM_JOB_ID"), "${CANDOR_JOB}", of("CANDOR_JOB"), "$CANDOR_JOB_NAME", of("CANDOR_JOB_NAME"),
			"$CANDOR_JOB", of("CANDOR_JOB"), "$CANDOR_ARRAY_INDEX", of("CANDOR_ARRAY_INDEX"), "$CANDOR_NODE", of("CANDOR_NODE")).Replace(text)
	}
	known := !strings.ContainsAny(fill(func(string) string { return "" }), "$`\\")
	return fill(value), known
}
