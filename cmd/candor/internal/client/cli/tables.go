package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// These are the values of --output that choose the form of a table.
const (
	formWide  = "wide"
	formNames = "name"
	formJSON  = "json"
)

// Tabled adds the flags for tables to a command. If --output already means the output files of a job, the flag is
// --table.
func (a *App) Tabled(cmd *cobra.Command) *cobra.Command {
	f, name := cmd.Flags(), "output"
	if f.Lookup(name) != nil {
		name = "table"
	}
	f.StringSliceVar(&a.Flags.columns, "columns", nil, "only these `columns` of the table, in this order, with commas between the titles")
	f.FuncP(name, "o", "`form` of the table: wide (nothing is cut), name (only the first column) or json", a.Form)
	cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{formWide, formNames, formJSON}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("columns", cobra.NoFileCompletions)
	return cmd
}

func (a *App) Form(text string) error {
	switch text {
	case formJSON:
		a.Flags.JSON = true
	case formWide, formNames:
	default:
		return Usagef("use wide, name or json")
	}
	a.Flags.form = text
	return nil
}

// Tariff returns a phrase for the price of an hour on a slot of a class, or "" if a slot costs nothing.
func Tariff(t market.SlotTariff) string {
	costs := "a slot of " + t.Class + " costs "
	switch {
	case t.Contention != nil && *t.Contention > 0:
		return fmt.Sprintf("slots of %s are scarce now: a job that runs only at such times pays up to %.0f%% of its budget", t.Class, 100**t.Contention)
	case t.Contention != nil:
		return ""
	case t.Sealed:
		return "the price of " + t.Class + " is sealed while only one other account bids, because the price would show the bid of that account"
	case t.OwnBid:
		return costs + "the job's own bid"
	case t.Length > 0:
		return fmt.Sprintf("%s%s for a job of %v, in proportion to the length of the job", costs, Hourly(t.Price), t.Length)
	}
	return costs + Hourly(t.Price)
}

// SlotPrice writes a price in a market. If `perSecond` is true, the price is the price of a slot-second, and SlotPrice
// writes it as a price for an hour.
func SlotPrice(price float64, perSecond bool) string {
	if perSecond {
		return messages.Short3(3600*price) + "/h"
	}
	return Price(price)
}

// Hourly writes the price of a slot-second as the price of an hour.
func Hourly(price messages.Credits) string {
	text := messages.Short3(3600 * price.Float())
	if text == "1" {
		return "1 credit an hour"
	}
	return text + " credits an hour"
}
