package jobfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// AddPrelude puts shell commands before a script. They set Slurm's variables, send the output to files, and set the
// script's arguments. The job is submitted by `user`.
func (j *Job) AddPrelude(user string) error {
	slurm := j.Slurm || j.Ranks() > 1 // srun and mpirun need these variables to start the ranks
	if !slurm && j.Stdin+j.Stdout+j.Stderr == "" && len(j.arguments) == 0 {
		return nil
	}
	stage := &j.Spec.Stages[0]
	switch {
	case len(j.Spec.Stages) == 1 && stage.Script != "":
	case j.Stdin+j.Stdout+j.Stderr == "":
		return nil
	case len(j.Spec.Stages) != 1:
		return messages.Errorf(messages.Invalid, "--stdout and --stderr are for jobs of one stage: redirect the output within the commands")
	default:
		words := make([]string, len(stage.Command))
		for i, word := range stage.Command {
			words[i] = Quote(word)
		}
		stage.Script, stage.Command = "#!/bin/sh\nexec "+strings.Join(words, " ")+"\n", nil
	}
	var lines []string
	if slurm {
		j.Spec.Numbered = stage.Array != nil
		if login := j.loginEnvironment(); login != "" {
			lines = append(lines, login)
		}
		lines = append(lines, j.slurmVariables(user), jobTimes)
		if free := j.freeThreads(); free != "" {
			lines = append(lines, free)
		}
		if j.system != "" {
			lines = append(lines, j.foreignVariables(user))
		}
		lines = append(lines, fmt.Sprintf(findSrun, Quote(j.Commands)))
	}
	if redirect, err := j.redirection(user); err != nil {
		return err
	} else if redirect != "" {
		lines = append(lines, redirect)
	}
	stage.Script = withPrelude(stage.Script, lines, j.arguments)
	return nil
}

// goesOn and goesOnIn mark the end of a prelude, which the client puts into a submitted script. If the prelude shares a
// line with the script, the rest of this line of the script follows goesOn. If the prelude has lines of its own, the
// number of the script's next line follows goesOnIn.
const (
	goesOn   = " # the script goes on: "
	goesOnIn = " # the script goes on in line "
)

// withoutPrelude returns a script as it was submitted. On the node, the script has a prelude. A script that submits
// itself again (sbatch $0) would otherwise submit the prelude too. Lines that the script adds to its copy are kept.
func withoutPrelude(script string) string {
	first, _ := cutInterpreter(script)
	next := strings.Count(first, "\n") + 2 // number of the line after a prelude of one line
	at := 0
	for line := range strings.Lines(script) {
		prelude, after, shared := strings.Cut(line, goesOn)
		if shared && isPrelude(prelude) && isComment(after) {
			return script[:at] + after + script[at+len(line):]
		}
		if prelude, number, found := strings.Cut(line, goesOnIn); found && isPrelude(prelude) && strings.TrimSpace(number) == strconv.Itoa(next) {
			return script[:at] + script[at+len(line):]
		}
		at += len(line)
	}
	before, number, found := strings.Cut(script, goesOnIn)
	number, _, _ = strings.Cut(number, "\n")
	n, err := strconv.Atoi(number)
	lines := strings.SplitAfter(script, "\n")
	if !found || err != nil || n-2 < strings.Count(before, "\n") || n > len(lines) {
		return script
	}
	return first + strings.Join(lines[n-1:], "")
}

// Submitted returns a job's script as it was submitted, also if its interpreter is no shell.
func Submitted(script string) string {
	if _, rest, is := strings.Cut(script, inFile); is {
		end, rest, _ := strings.Cut(rest, "'")
		_, rest, _ = strings.Cut(rest, "\n")
		if own, _, found := strings.Cut(rest, "\nEND_"+end+"\n"); found {
			return own + "\n"
		}
	}
	return withoutPrelude(script)
}

// findSrun adds a directory of Candor's commands to the PATH: the user's directory, or else the node's directory. It
// comes last in the PATH, so that the other programs in it hide no program. It comes first if the PATH has another
// srun, for example because Slurm is still installed on the node. Functions and aliases named srun are kept, but they
// do not count as another srun.
const findSrun = `for CANDOR_SRUN in %s "${CANDOR_COMMANDS-}"; do if [ -x "$CANDOR_SRUN/srun" ]; then CANDOR_OTHER=$({ unset -f srun; unalias srun; } 2>/dev/null || :; command -v srun) || PATH=$PATH:$CANDOR_SRUN; [ -z "$CANDOR_OTHER" ] || [ "$CANDOR_OTHER" -ef "$CANDOR_SRUN/srun" ] || PATH=$CANDOR_SRUN:$PATH; break; fi; done; unset CANDOR_SRUN CANDOR_OTHER`

// inFile begins the command that writes a script of another interpreter to a file.
const inFile = `script=$(mktemp) && cat >"$script" <<'END_`

// A prelude is a block of shell commands that candor puts before a script. isPrelude reports whether the given commands
// look like a prelude.
func isPrelude(commands string) bool {
	return strings.Contains(commands, "$CANDOR_JOB") || strings.Contains(commands, cannotCreate) || strings.HasPrefix(commands, setArguments)
}

// cutInterpreter divides a script into the line with its interpreter, if it has one, and the rest.
func cutInterpreter(script string) (first, rest string) {
	if !strings.HasPrefix(script, "#!") {
		return "", script
	}
	first, rest, _ = strings.Cut(script, "\n")
	return first + "\n", rest
}

// isComment reports whether the first line of a text is empty or a comment.
func isComment(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// loginEnvironment returns a shell command that reads the profiles of a login shell. They define commands such as
// module. sbatch gives a script this environment if --export passes on only some variables, or none. loginEnvironment
// returns "" if the job has no --export, or passes on all variables.
func (j *Job) loginEnvironment() string {
	if j.Options == nil || !j.Options.Flags.Changed("export") || slices.Contains(j.Options.Export, "ALL") {
		return ""
	}
	files, first := "~/.profile", ""
	if first, _, _ = strings.Cut(j.Spec.Stages[0].Script, "\n"); interpreterOf(first) == "bash" {
		files = "~/.bash_profile ~/.bash_login ~/.profile"
	}
	login := "{ [ ! -r /etc/profile ] || . /etc/profile; for login in " + files + `; do if [ -r "$login" ]; then . "$login"; break; fi; done; unset login; } >/dev/null 2>&1 || :`
	if values := j.Spec.Env; len(values) > 0 { // variables from --export win over variables from the profiles
		login += "; export"
		for _, v := range values {
			login += " " + v.Name + "=" + Quote(v.Value)
		}
	}
	return login
}

// jobNumber returns a shell expression for the number of the job or array element.
func (j *Job) jobNumber() string {
	if j.Spec.Stages[0].Array != nil && j.Spec.Numbered {
		return "$((CANDOR_JOB + CANDOR_TASK))"
	}
	return "$CANDOR_JOB"
}

func (j *Job) slurmVariables(user string) string {
	values := [][2]string{
		{"SLURM_JOB_ID", `"` + j.jobNumber() + `"`}, {"SLURM_JOBID", `"` + j.jobNumber() + `"`}, {"SLURM_JOB_NAME", `"$CANDOR_JOB_NAME"`},
		{"SLURM_SUBMIT_DIR", Quote(j.Spec.Dir)}, {"SLURM_JOB_USER", Quote(user)}, {"SLURM_CLUSTER_NAME", `"$CANDOR_SITE"`},
		{"SLURMD_NODENAME", `"$CANDOR_NODE"`}, {"SLURM_JOB_UID", `"${UID:-$(id -u)}"`}, {"SLURM_JOB_GID", `"${GROUPS:-$(id -g)}"`}, {"SLURM_TASK_PID", `"$$"`},
		{"SLURM_RESTART_COUNT", "$((CANDOR_ATTEMPT - 1))"},
	}
	if j.Host != "" {
		values = append(values, [2]string{"SLURM_SUBMIT_HOST", Quote(j.Host)})
	}
	if j.Path != "" {
		values = append(values, [2]string{pathVariable, Quote(j.Path)})
	}
	values = append(values, j.allocationVariables()...)
	named := func(variable, name, otherwise string) {
		if name != "" {
			otherwise = Quote(name)
		}
		values = append(values, [2]string{variable, otherwise})
	}
	named("SLURM_JOB_PARTITION", cmp.Or(j.Names.Partition, j.Spec.Market), `"$CANDOR_MARKET"`)
	named("SLURM_JOB_ACCOUNT", cmp.Or(j.Names.Account, j.Spec.Project), `"$CANDOR_PAYER"`)
	if a := j.indices(); a != nil {
		last := a.At(a.Count() - 1)
		if j.split.element {
			values = append(values, [2]string{"CANDOR_ARRAY_INDEX", j.index()})
		}
		values = append(values, [2]string{"SLURM_ARRAY_JOB_ID", `"` + j.arrayNumber() + `"`}, [2]string{"SLURM_ARRAY_TASK_ID", `"` + j.index() + `"`},
			[2]string{"SLURM_ARRAY_TASK_COUNT", strconv.FormatInt(a.Count(), 10)},
			[2]string{"SLURM_ARRAY_TASK_MIN", strconv.FormatInt(a.At(0), 10)}, [2]string{"SLURM_ARRAY_TASK_MAX", strconv.FormatInt(last, 10)}, [2]string{"SLURM_ARRAY_TASK_STEP", strconv.FormatInt(a[0].Step, 10)})
	}
	values = append(values, j.shapeVariables()...)
	values = append(values, j.hetVariables()...)
	return exportOf(values)
}

// jobTimes is a shell command that sets variables to the times of the begin and the end of the job, in seconds since
// 1970. A job without a time limit has no end.
const jobTimes = `export SLURM_JOB_START_TIME="${EPOCHSECONDS:-$(date +%s)}"; [ -z "${CANDOR_TIME_LIMIT:-}" ] || export SLURM_JOB_END_TIME=$((SLURM_JOB_START_TIME + CANDOR_TIME_LIMIT))`

// shapeVariables returns environment variables with the resources of a task. As under Slurm, some are set only if the
// job uses the matching option.
func (j *Job) shapeVariables() (values [][2]string) {
	stage, noted := &j.Spec.Stages[0], map[string]string{}
	if j.Options != nil {
		noted = j.Options.Noted
	}
	add := func(name, value string) { values = append(values, [2]string{name, value}) }
	given := func(option, name, value string) {
		if _, is := noted[option]; is {
			add(name, value)
		}
	}
	mebibytes := func(bytes int64) string { return strconv.FormatInt((bytes+1<<20-1)>>20, 10) }
	for _, name := range []string{"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK"} {
		given("cpus-per-task", name, strconv.Itoa(cmp.Or(j.allocation.cpusPerRank, stage.CPUs)))
	}
	given("mem-per-cpu", "SLURM_MEM_PER_CPU", mebibytes(j.relative.perCPU))
	given("mem-per-gpu", "SLURM_MEM_PER_GPU", mebibytes(j.relative.perGPU))
	if stage.Memory == job.AllMemory {
		given("mem", "SLURM_MEM_PER_NODE", `"$((${CANDOR_MEMORY:-0} >> 20))"`)
	} else {
		given("mem", "SLURM_MEM_PER_NODE", mebibytes(stage.Memory))
	}
	add("SLURM_JOB_QOS", Quote(cmp.Or(j.Names.QOS, "normal")))
	if stage.GPUs == 0 {
		return values
	}
	add("SLURM_GPUS_ON_NODE", strconv.Itoa(stage.GPUs))
	add("SLURM_JOB_GPUS", `"$CANDOR_GPUS"`)
	for _, option := range []string{"gpus", "gpus-per-node", "gpus-per-task", "cpus-per-gpu"} {
		given(option, "SLURM_"+strings.ToUpper(strings.ReplaceAll(option, "-", "_")), Quote(noted[option]))
	}
	return values
}

// cannotCreate ends a task if its output file cannot be created, with the exit code of sysexits.h. Bash itself would
// continue.
const cannotCreate = " || exit 73"

// redirection returns a shell command that opens the job's files as output and input, or "".
func (j *Job) redirection(user string) (string, error) {
	in, err := j.file("--input", j.Stdin, user)
	if err != nil {
		return "", err
	}
	var files [2]string
	for i, pattern := range []string{j.Stdout, j.Stderr} {
		if files[i], err = j.file([]string{"--stdout", "--stderr"}[i], pattern, user); err != nil {
			return "", err
		}
		if within := j.inDirectory[i]; within != "" && pattern == j.Usual[i] {
			name, err := j.file("", within, user)
			if err != nil {
				return "", err
			}
			files[i] = `"$(f=` + files[i] + `; [ ! -d "$f" ] || f="$f/"` + name + `; printf %s "$f")"`
		}
	}
	out, errs := files[0], files[1]
	if in+out+errs == "" {
		return "", nil
	}
	to, command := ">", "exec"
	if j.Append {
		to = ">>"
	}
	if in != "" {
		command += " <" + in
	}
	if out != "" {
		command += " " + to + out
	}
	switch {
	case out != "" && (errs == "" || errs == out):
		command += " 2>&1"
	case errs != "":
		command += " 2" + to + errs
	}
	return command + cannotCreate, nil
}

// file returns a shell word for a pattern of sbatch, such as "logs/%A_%4a.out".
func (j *Job) file(option, pattern, user string) (string, error) {
	if pattern == "" {
		return "", nil
	}
	word, text := "", ""
	flush := func() {
		if text != "" {
			word += Quote(text)
		}
		text = ""
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			text += pattern[i : i+1]
			continue
		}
		width, from := 0, i
		for i++; i < len(pattern) && pattern[i] >= '0' && pattern[i] <= '9' && width < 100; i++ {
			width = 10*width + int(pattern[i]-'0')
		}
		if i == len(pattern) {
			return "", messages.Errorf(messages.Invalid, "%s %q: ends with %%: write %%%% for a percent sign", option, pattern)
		}
		switch value := j.placeholder(pattern[i], user); {
		case pattern[i] == '%':
			text += "%"
		case value == "" && j.Slurm: // sbatch does not replace letters that it does not know
			text += pattern[from : i+1]
		case value == "":
			return "", messages.Errorf(messages.Invalid, "%s %q: there is no %%%c: use %%j, %%A, %%a, %%x, %%u, %%N, %%n or %%t", option, pattern, pattern[i])
		case width > 0 && !strings.HasPrefix(value, "${"):
			flush()
			word += fmt.Sprintf(`"$(printf %%0%dd %s)"`, min(width, 10), value)
		default:
			flush()
			word += `"` + value + `"`
		}
	}
	flush()
	return word, nil
}

// In a pattern for file names, a letter such as j in "%j" stands for a value. placeholder returns this value as text
// for the shell, to be used within double quotes. For an unknown letter it returns "".
func (j *Job) placeholder(letter byte, user string) string {
	switch letter {
	case 'j', 'J':
		if j.Spec.Stages[0].Array != nil && !j.Spec.Numbered {
			return "${CANDOR_JOB}_$CANDOR_ARRAY_INDEX"
		}
		return j.jobNumber()
	case 'A':
		return j.arrayNumber()
	case 'a':
		if j.indices() == nil {
			return "4294967294" // Slurm uses the same value
		}
		return j.index()
	case 'x':
		return "$CANDOR_JOB_NAME"
	case 'N':
		return "$CANDOR_NODE"
	case 'n', 't':
		return "0"
	case 'u':
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(user)
	}
	return ""
}

// Quote quotes a text so that a shell reads it as one word.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// setArguments begins the command that sets the arguments of a shell script.
const setArguments = "set --"

// withPrelude puts shell commands before a script, and a command that sets the script's arguments. If a shell runs the
// script and the script begins with a comment line, these commands go before the comment, on the same line. So no line
// is added, and the shell's messages have the line numbers of the submitted script. If the script begins with no
// comment, the commands become separate lines. For a script of another interpreter, withPrelude returns a shell script
// that writes the script to a file and runs it.
func withPrelude(script string, commands, arguments []string) string {
	words := ""
	for _, a := range arguments {
		words += " " + Quote(a)
	}
	first, rest := cutInterpreter(script)
	if !shells[interpreterOf(first)] {
		if len(commands) > 0 {
			return inShell(strings.Join(commands, "; ")+"\n", script, words)
		}
		return inShell("", script, words)
	}
	if words != "" {
		commands = append(commands, setArguments+words)
	}
	prelude := strings.Join(commands, "; ")
	if at := sharedLine(script); at >= 0 && !strings.Contains(prelude, "\n") {
		return script[:at] + prelude + goesOn + script[at:]
	}
	head := first + prelude
	return head + goesOnIn + strconv.Itoa(strings.Count(head, "\n")+2) + "\n" + rest
}

// A script begins with comment lines, and some of them are directives. sharedLine returns the position of the first
// comment line that is not a directive, or -1 if there is none. Only such a line may be changed: scripts can read their
// own directives (grep ^#SBATCH $0), so the directives must stay as they are.
func sharedLine(script string) int {
	first, rest := cutInterpreter(script)
	at := len(first)
	for line := range strings.Lines(rest) {
		if !isComment(line) {
			break
		}
		if !slices.ContainsFunc([]string{"#SBATCH", "#CANDOR", "#PBS", "#$", "#BSUB"}, func(marker string) bool { return strings.Contains(line, marker) }) {
			return at
		}
		at += len(line)
	}
	return -1
}

// inShell returns a shell script that writes a script of another interpreter to a file and runs it. The script's
// arguments are already quoted.
func inShell(before, script, arguments string) string {
	digest := sha256.Sum256([]byte(script))
	end := hex.EncodeToString(digest[:8])
	return "#!/bin/sh\n" + before + inFile + end + "' && chmod 700 \"$script\" || exit 126\n" +
		strings.TrimSuffix(script, "\n") + "\nEND_" + end + "\nexec \"$script\"" + arguments + "\n"
}
