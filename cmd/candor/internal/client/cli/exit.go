package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// The exit codes; the help topic exit-codes documents them.
const (
	CodeOK          = 0
	CodeFailed      = 1
	CodeUsage       = 2
	CodeNotFound    = 3
	CodeDenied      = 4
	CodeCredits     = 5
	CodeUnavailable = 6
	CodeRepaired    = 7 // only "peer reconcile" exits with it
	CodeInterrupted = 130
)

// ExitStatus is an error that ends the program with a code and without a message.
type ExitStatus int

// Error returns a text with the code. Users do not see it.
func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ExitCode returns the code.
func (e ExitStatus) ExitCode() int { return int(e) }

// usageError is the error for a command line that cannot be understood.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

// ExitCode returns the exit code for wrong usage.
func (e *usageError) ExitCode() int { return CodeUsage }

// Usagef returns a usageError with a formatted message.
func Usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

type coder interface {
	error
	ExitCode() int
}

func HasExitCode(err error) bool {
	_, ok := errors.AsType[coder](err)
	return ok
}

// ExitCode maps an error to the exit code of the program.
func ExitCode(err error) int {
	if c, ok := errors.AsType[coder](err); ok {
		return c.ExitCode()
	}
	if isCobraUsage(err) {
		return CodeUsage
	}
	switch messages.KindOf(err) {
	case messages.Invalid, messages.TooLarge:
		return CodeUsage
	case messages.NotFound:
		return CodeNotFound
	case messages.PermissionDenied:
		return CodeDenied
	case messages.Insufficient:
		return CodeCredits
	case messages.Unavailable, messages.NotLeader, messages.Unknown:
		return CodeUnavailable
	}
	return CodeFailed
}

// isCobraUsage reports whether cobra returned an error because required flags are missing or flags exclude one another.
// cobra gives these errors no type of their own.
func isCobraUsage(err error) bool {
	return strings.HasPrefix(err.Error(), "required flag(s) ") || strings.HasPrefix(err.Error(), "if any flags in the group ")
}

// Explain returns the text of an error for the user. It returns "" for an [ExitStatus].
func Explain(cmd *cobra.Command, err error) string {
	if _, ok := errors.AsType[ExitStatus](err); ok {
		return ""
	}
	text := Sentence(err)
	if names, ok := strings.CutPrefix(text, "required flag(s) "); ok && isCobraUsage(err) {
		text = "missing: --" + strings.ReplaceAll(strings.NewReplacer("\"", "", " not set", "").Replace(names), ", ", ", --") + "\nSee: " + cmd.CommandPath() + " --help"
	}
	return cmd.CommandPath() + ": " + missingFile().ReplaceAllString(text, "there is no file or directory $1")
}

// NotMade returns the error for a file that could not be created. If its directory is missing, the error says so.
func NotMade(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s", filepath.Dir(file))
	}
	return err
}

// missingFile matches the operating system's text for a missing file.
var missingFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:open|stat|lstat) ([^:\n]+): no such file or directory`)
})

// Sentence returns the text of an error without the name of the operation that failed at the site.
func Sentence(err error) string {
	wire, ok := errors.AsType[*messages.Error](err)
	if !ok {
		return err.Error()
	}
	head, tail, more := strings.Cut(wire.Message, "\n")
	text := fmt.Sprintf("%s (%s)", head, wire.Kind)
	if more {
		text += "\n" + tail
	}
	return text
}

// Within returns an error of the same kind. Its message begins with `where` and a colon.
func Within(where string, err error) error {
	if wire, ok := errors.AsType[*messages.Error](err); ok {
		return &messages.Error{Kind: wire.Kind, Op: wire.Op, Message: where + ": " + wire.Message}
	}
	return fmt.Errorf("%s: %w", where, err)
}

// UsageErrors makes every command below cmd return a usageError for a wrong command line.
func UsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usagef("%s%s\nSee: %s --help", jobfile.Reword(err), similarFlag(cmd, err), cmd.CommandPath())
	})
	wrapArguments(cmd)
}

// wrapArguments makes every command below cmd check its arguments: none may be empty, and their number must match the
// usage line. Some commands only group other commands. With wrong arguments, such a command lists the commands of its
// group, and exits with the code for wrong usage.
func wrapArguments(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, OneOf
	}
	check := cmd.Args
	if check == nil {
		check = byUsage(cmd.Use)
	}
	RefuseEmpty(cmd.Flags())
	RefuseEmpty(cmd.PersistentFlags())
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := checkFilled(cmd, args); err != nil {
			return err
		}
		if err := check(cmd, args); err != nil {
			return Usagef("%s\nUsage: %s", rewordCount(err), cmd.UseLine())
		}
		return nil
	}
	for _, c := range cmd.Commands() {
		wrapArguments(c)
	}
}

// countError matches cobra's text for a wrong number of arguments.
var countError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(accepts|accepts at most|requires at least) (\d+) arg\(s\), (?:only )?received (\d+)$`)
})

// extraArgument matches cobra's text for an argument to a command that takes none.
var extraArgument = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^unknown command (".*") for ".*"$`)
})

func rewordCount(err error) string {
	m := countError().FindStringSubmatch(err.Error())
	if m == nil {
		if extra := extraArgument().FindStringSubmatch(err.Error()); extra != nil {
			return "takes no arguments: leave out " + extra[1]
		}
		return err.Error()
	}
	n, _ := strconv.Atoi(m[2]) // the pattern matched only digits
	verb := map[string]string{"accepts": "takes", "accepts at most": "takes at most", "requires at least": "takes at least"}[m[1]]
	return verb + " " + spelling.Number(n, "argument", "arguments") + ", not " + m[3]
}

// byUsage reads a usage line, such as "account [NAME]" or "cancel NUMBER...". It returns a check that a command has the
// number of arguments that the line allows. A line may not have both required and optional arguments, except if its
// last argument may be repeated.
func byUsage(use string) cobra.PositionalArgs {
	required, optional := 0, 0
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "[") {
			optional++
		} else {
			required++
		}
	}
	switch {
	case strings.HasSuffix(use, "..."):
		return cobra.MinimumNArgs(required)
	case optional > 0:
		return cobra.MaximumNArgs(optional)
	case required > 0:
		return cobra.ExactArgs(required)
	}
	return cobra.NoArgs
}

// UnknownCommand returns the error for an unknown command. It suggests similar commands, and groups that have a command
// of this name: "candor node drain" for "candor drain".
func UnknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	similar := cmd.SuggestionsFor(name)
	for _, group := range cmd.Commands() {
		if found := named(group.Commands(), name); found != nil && group.IsAvailableCommand() {
			similar = append(similar, found.CommandPath())
		}
	}
	if len(similar) > 0 {
		hint = ": did you mean " + strings.Join(similar, " or ") + "?"
	}
	return Usagef("unknown command %q%s\nSee: %s --help", name, hint, cmd.CommandPath())
}

// named returns the command with a name, or nil if there is none.
func named(commands []*cobra.Command, name string) *cobra.Command {
	if i := slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
		return commands[i]
	}
	return nil
}

// similarFlag suggests a known flag that is similar to an unknown one.
func similarFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	name, best, distance := unknown.GetSpecifiedName(), "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := spelling.Distance(name, f.Name)
		if strings.HasPrefix(name, f.Name+"-") { // such as time-limit for the unknown flag time
			d = 1
		}
		if d < distance && !f.Hidden {
			best, distance = f.Name, d
		}
	})
	switch {
	case best != "" && unknown.GetSpecifiedShortnames() == "":
		return ": did you mean --" + best + "?"
	case strings.Trim(unknown.GetSpecifiedShortnames(), "0123456789.") == "" && unknown.GetSpecifiedShortnames() != "":
		return ": write numbers without a dash"
	case cmd.Name() == "submit":
		return ": if the option is for the script, put -- before it"
	case strings.Contains(cmd.Use, "-- COMMAND"):
		return ": if the option is for the command to run, put -- before that command"
	}
	return ""
}

// OneOf is the RunE of a command that only groups other commands: it returns an error that lists these commands.
func OneOf(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UnknownCommand(cmd, args[0])
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	all := strings.Join(names, ", ")
	if last := strings.LastIndex(all, ", "); last >= 0 {
		all = all[:last] + " or " + all[last+2:]
	}
	return Usagef("say what to do: %s\nSee: %s --help", all, cmd.CommandPath())
}
