// Package solve is the command `candor solve`. It runs one mechanism on a JSON document, without a site.
package solve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// solvers maps a mechanism, or a part of one, to a function. The function reads a document and returns a value for
// JSON.
func solvers() map[string]func(document []byte) (any, error) {
	all := map[string]func([]byte) (any, error){"density": solveDensity, "utility": solveUtility, "valuation": valuation.SolveDocument}
	for _, name := range registry.Names(nil) {
		if t := registry.Of(&market.Market{Mechanism: name}); t.Solve != nil {
			all[name] = t.Solve
		}
	}
	return all
}

// maxDocument is the largest size of the input in bytes.
const maxDocument = 1 << 30

// Command returns `candor solve`. Its errors are of type *messages.Error. For a bad document, their kind is Invalid or
// TooLarge, and the exit code is 2.
func Command() *cobra.Command {
	names := slices.Sorted(maps.Keys(solvers()))
	var pretty bool
	c := &cobra.Command{
		Use:   "solve MECHANISM < case.json",
		Short: "run a mechanism on a JSON document and print the outcome",
		Long: "Reads one JSON document from standard input, runs a mechanism on it, and prints\n" +
			"the outcome as JSON. The mechanisms are:\n\n  " + strings.Join(names, "\n  "),
		Example: `  echo '{"alpha":0.5,"jobs":[{"budget":100,"kind":"linear","weights":[3,2]}]}' |
      candor solve proportional`,
		ValidArgs:     names,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, args []string) error {
			return simulate.Await(c.Context(), func() error { return run(args, c.InOrStdin(), c.OutOrStdout(), pretty) })
		},
	}
	c.Flags().BoolVar(&pretty, "pretty", false, "indent the output")
	return c
}

func run(args []string, in io.Reader, out io.Writer, pretty bool) error {
	known := solvers()
	names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	if len(args) > 1 {
		return messages.Errorf(messages.Invalid, "%q: is an argument too many: name one mechanism; the document comes from standard input, as in candor solve %s < case.json", args[1], args[0])
	}
	if len(args) == 0 {
		return messages.Errorf(messages.Invalid, "name one mechanism: %s", names)
	}
	solve, ok := known[args[0]]
	if !ok {
		return messages.Errorf(messages.Invalid, "mechanism %q: is not one of %s", args[0], names)
	}
	document, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err != nil {
		return messages.Errorf(messages.Internal, "reading the document: %v", err)
	}
	if len(document) > maxDocument {
		return messages.Errorf(messages.TooLarge, "the document is above the limit of %d bytes: split it", maxDocument)
	}
	answer, err := solve(document)
	if err != nil && cut(document) {
		return messages.Errorf(messages.Invalid, "standard input: the document ends in the middle")
	}
	if err != nil {
		return messages.AsError("solve "+args[0], err)
	}
	return write(out, answer, pretty)
}

// cut reports whether a document ends too early. The user then gets an error about the early end, not about missing
// keys.
func cut(document []byte) bool {
	err := json.NewDecoder(bytes.NewReader(document)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF)
}

func write(out io.Writer, answer any, pretty bool) error {
	e := json.NewEncoder(out)
	if pretty {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(answer); err != nil {
		return messages.Errorf(messages.Internal, "writing the outcome: %v", err)
	}
	return nil
}
