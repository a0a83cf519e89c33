package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hint says the usual cause of an empty value.
const hint = "the value is empty: set the shell variable that gives it"

// RefuseEmpty makes flags refuse empty values. Without it, --task "$I" would select all tasks if I is not set.
func RefuseEmpty(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "string", "stringSlice", "stringArray", "func":
			if _, already := f.Value.(filled); !already {
				f.Value = filled{f.Value}
				f.DefValue = strings.TrimSuffix(f.DefValue, "[]") // pflag hides "[]" in the help only for its own types
			}
		}
	})
}

type filled struct{ pflag.Value }

// Set refuses text that is empty or only spaces and commas.
func (v filled) Set(text string) error {
	if blank(text) {
		return errors.New(hint + ", or leave the flag out")
	}
	return v.Value.Set(text)
}

func blank(text string) bool { return strings.Trim(text, ", \t\n") == "" }

// checkFilled refuses empty arguments, except the arguments of a job's program.
func checkFilled(cmd *cobra.Command, args []string) error {
	switch {
	case cmd.DisableFlagParsing:
		return nil
	case strings.HasSuffix(cmd.Use, "[ARGUMENT...]"), strings.HasSuffix(cmd.Use, "-- COMMAND..."):
		args = args[:min(len(args), 1)]
	}
	for i, text := range args {
		if blank(text) {
			return Usagef("argument %d %q: %s", i+1, text, hint)
		}
	}
	return nil
}
