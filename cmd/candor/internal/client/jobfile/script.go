package jobfile

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// ParseScript reads a script with its directives. Its errors have the kind Invalid and name the line. The argument
// `arguments` has the arguments of the script; [Job.AddPrelude] passes them to the script as $1, $2 and so on.
func ParseScript(source []byte, arguments []string, lookup Lookup) (*Job, error) {
	if err := checkText(source); err != nil {
		return nil, err
	}
	text := withoutPrelude(string(source))
	found, err := scan(text)
	if err != nil {
		return nil, err
	}
	o := NewOptions(lookup)
	job := &Job{Options: o, Slurm: len(found.sbatch) > 0}
	if err := found.checkOthers(job); err != nil {
		return nil, err
	}
	if err := o.readSbatch(found.sbatch, &job.Warnings); err != nil {
		return nil, err
	}
	if system := found.system(); system != "" {
		if err := o.translate(system, append(found.pbs, found.sge...), job); err != nil {
			return nil, err
		}
	}
	for _, d := range found.candor {
		if err := o.readDirective(d); err != nil {
			return nil, err
		}
	}
	job.arguments = arguments
	job.Spec.Stages = []jobmsg.Stage{{Name: singleStage, Script: text}}
	return job, nil
}

func checkText(source []byte) error {
	if bytes.IndexByte(source, 0) >= 0 {
		return messages.Errorf(messages.Invalid,
			"this is a binary file, not a script or a job file: to run a program, submit a script that calls it")
	}
	if bytes.HasPrefix(source, []byte(byteOrderMark)) {
		return messages.Errorf(messages.Invalid,
			"line 1: begins with a byte-order mark, so the interpreter of the script would not be found: convert the script with dos2unix, or save it as UTF-8 without a mark")
	}
	first, _, _ := bytes.Cut(source, []byte("\n"))
	if bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(first, []byte("\r")) {
		return messages.Errorf(messages.Invalid,
			"line 1: has a Windows line end, so the interpreter of the script would not be found: convert the script with dos2unix")
	}
	if before, _, dos := bytes.Cut(source, []byte("\r\n")); dos && shells[interpreterOf(string(first))] {
		return messages.Errorf(messages.Invalid,
			"line %d: has a Windows line end, which a shell reads as a part of the last word: convert the script with dos2unix", bytes.Count(before, []byte("\n"))+1)
	}
	return nil
}

// byteOrderMark begins some texts from Windows. With it, the kernel does not find the script's interpreter.
const byteOrderMark = "\ufeff"

// directive is the text after a marker such as #CANDOR or #SBATCH, with the number of its line.
type directive struct {
	line int
	text string
}

type directives struct {
	candor, sbatch []directive
	pbs, sge       []directive
	others         string // the complaint about directives of another system; "" means there are none
}

// checkOthers refuses a script if all its directives are for systems that Candor does not read. Otherwise it warns
// about these directives.
func (f *directives) checkOthers(job *Job) error {
	switch {
	case f.others == "", f.system() != "":
	case len(f.candor)+len(f.sbatch) == 0:
		return messages.Errorf(messages.Invalid, "%s: use #CANDOR lines instead (see candor submit --help)", f.others)
	default:
		job.Warnings = append(job.Warnings, f.others)
	}
	return nil
}

// system returns PBS or Grid Engine if all directives of the script are for this one system, otherwise "".
func (f *directives) system() string {
	switch {
	case len(f.candor)+len(f.sbatch) > 0, len(f.pbs) > 0 && len(f.sge) > 0:
		return ""
	case len(f.pbs) > 0:
		return pbs
	case len(f.sge) > 0:
		return gridEngine
	}
	return ""
}

// foreign collects the directives of PBS and Grid Engine. When it meets the first directive of a system other than
// Slurm, it also stores an error that says that candor does not read such lines.
func (f *directives) foreign(line string, number int) {
	for marker, system := range map[string]string{"#PBS": "PBS", "#$": "Grid Engine", "#BSUB": "LSF"} {
		rest, ok := cutMarker(line, marker)
		if !ok || !strings.HasPrefix(strings.TrimSpace(rest), "-") {
			continue
		}
		switch marker {
		case "#PBS":
			f.pbs = append(f.pbs, directive{number, rest})
		case "#$":
			f.sge = append(f.sge, directive{number, rest})
		}
		if f.others == "" {
			f.others = fmt.Sprintf("line %d: %s lines are for %s, and candor does not read them", number, marker, system)
		}
	}
}

// scan collects the directives before the first command of a script. Grid Engine also reads the lines after it.
func scan(source string) (found directives, err error) {
	number, commands := 0, false
	for line := range strings.Lines(source) {
		number++
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		if commands = commands || trimmed != "" && trimmed[0] != '#'; commands && found.system() != gridEngine {
			return found, nil
		}
		if commands {
			if _, ok := cutMarker(line, markers[gridEngine]); ok {
				found.foreign(line, number)
			}
		} else if rest, ok := cutMarker(line, "#CANDOR"); ok {
			found.candor = append(found.candor, directive{number, rest})
		} else if rest, ok := strings.CutPrefix(line, "#SBATCH"); ok && (rest == "" || strings.Contains(" 	-", rest[:1])) {
			found.sbatch = append(found.sbatch, directive{number, rest})
		} else {
			found.foreign(line, number)
		}
	}
	if commands || len(found.sbatch) > 0 { // sbatch accepts a script without commands
		return found, nil
	}
	return found, messages.Errorf(messages.Invalid, "the script has no command: nothing but comments in %d lines", number)
}

func cutMarker(line, marker string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(line, marker)
	return rest, ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

func (o *Options) readDirective(d directive) error {
	words, err := splitWords(d.text, false)
	if err != nil {
		return messages.Errorf(messages.Invalid, "line %d: #CANDOR%s: %v", d.line, d.text, err)
	}
	if err := o.Flags.Parse(words); err != nil {
		return messages.Errorf(messages.Invalid, "line %d: #CANDOR%s: %s", d.line, d.text, Reword(err))
	}
	if extra := o.Flags.Args(); len(extra) > 0 {
		return messages.Errorf(messages.Invalid, "line %d: #CANDOR%s: %q is not an option: options begin with -- (see candor submit --help)",
			d.line, d.text, extra[0])
	}
	return nil
}

// flagError matches pflag's text for a refused value of an option.
var flagError = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^invalid argument (".*") for "(.*)" flag: (.*)$`) })

// Reword rewrites an error of the flag parser in the words of a user.
func Reword(err error) string {
	m := flagError().FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	long := m[2][strings.LastIndex(m[2], "-")+1:]
	if i := strings.Index(m[2], "--"); i >= 0 {
		long = m[2][i+2:]
	}
	if strings.HasPrefix(m[3], "strconv.") {
		return "--" + long + " " + m[1] + ": is not a number"
	}
	if strings.HasPrefix(m[3], "time: ") {
		return "--" + long + " " + m[1] + ": write a time like 10s, 500ms or 1m30s"
	}
	if strings.Contains(m[3], m[1]) {
		return "--" + long + ": " + m[3]
	}
	return "--" + long + " " + m[1] + ": " + m[3]
}

// Words splits a line as a shell would: at spaces, with quotes and backslashes, up to a comment.
func Words(line string) ([]string, error) { return splitWords(line, false) }

// splitWords does the same as Words. If `anywhere` is true, a comment may also begin within a word, as in sbatch's
// lines.
func splitWords(s string, anywhere bool) (words []string, err error) {
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
			inWord = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case c == '#' && (anywhere || !inWord):
			if inWord {
				words = append(words, word.String())
			}
			return words, nil
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// shells are the interpreters that know "set --".
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "ksh": true, "mksh": true, "zsh": true, "busybox": true}

// interpreterOf returns the name of the interpreter in a "#!" line. If the line names env(1), this is the program that
// env starts. Without a "#!" line the interpreter is sh.
func interpreterOf(first string) string {
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	for i, w := range words {
		name := path.Base(w)
		if i == 0 && name == "env" || i > 0 && (strings.HasPrefix(w, "-") || strings.Contains(w, "=")) {
			continue
		}
		return name
	}
	return "sh"
}

// documentKey matches a line that can begin a document: a brace, "---", or a field of a job.
var documentKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\{|---|"?(name|project|market|budget|utility|stages|env|dir|class|tasks|command|script|time_limit|attempts|array|max_running|inputs|outputs|begin)"?\s*:(\s|$))`)
})

// IsScript reports whether a file is a script or a document. A file that begins with "#!" is a script. For another
// file, IsScript looks at the end of its name, such as .sh or .yaml. If this does not decide, IsScript looks at the
// first lines. If these do not decide either, the result `ok` is false.
func IsScript(name string, source []byte) (script, ok bool) {
	if bytes.HasPrefix(source, []byte("#!")) {
		return true, true
	}
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return false, true
	case ".sh", ".bash":
		return true, true
	}
	for line := range strings.Lines(string(source)) {
		if _, marked := cutMarker(strings.TrimRight(line, "\r\n"), "#CANDOR"); marked || strings.HasPrefix(line, "#SBATCH ") {
			return true, true
		}
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			return false, documentKey().MatchString(line)
		}
	}
	return false, false
}

// OfCommand returns a job that runs one command.
func OfCommand(words []string) *Job {
	return &Job{Spec: jobmsg.JobSpec{Stages: []jobmsg.Stage{{Name: singleStage, Command: words}}}, Options: NewOptions(nil)}
}
