package submit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

func quoteCommand(a *cli.App) *cobra.Command {
	var from offersQuery
	cmd, sub := describing(a, &cobra.Command{
		Use:   "quote [flags] [FILE|-] [ARGUMENT...]",
		Short: "ask for completion times and prices of a job",
		Long: `Ask a contract market for its menu of completion times and prices. The job is
described as for candor submit, and declares a length and a valuation. The menu
is for you alone, and ends after a while. To accept one of its contracts, use
candor submit --contract ID with the same job. When the job has ended, the price
is multiplied by the received worth and divided by the promised worth.

Without a valuation, the answer is an estimate: when the first task would start,
when the job would end, and what it would cost, at present prices and for the
slots that it asks for. Options alone, without a file, are enough. SLOTS is the
number of slots that a task takes, and PER HOUR is the present cost of an hour
on all these slots. PRICE is the cost for the estimated run time; if no run time
is known, PRICE is the most that the job may cost. No credits are held, and the
answer binds nobody. After a day of history, a market whose prices follow the
demand also names the cheapest hour of the last week, and the cost of the slots
in that hour. A market that divides slots by budgets shows the bids for this
number of slots instead. Prices that you may not see are left out.

With --sites, ask your site and its peers for offers, in one table. Contract
markets offer contracts. Other markets answer with the estimate of their own
site, at present prices. A mark shows the offer that candor submit --site auto
would choose. Sites that do not answer in time are named.`,
		Example: "  candor quote --cpus 4 --memory 16G --gpus 1 job.sh\n  candor quote job.yaml\n  candor submit --contract q7-3 --budget 12 job.yaml\n  candor quote --sites all --within 1s job.yaml",
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return quote(cmd.Context(), a, sub, &from, args) }
	cmd.Flags().BoolVar(&sub.script, "script", false, "read the file as a script")
	cmd.Flags().StringSliceVar(&from.sites, "sites", nil, "ask these `sites`, or all: west,east")
	cmd.Flags().DurationVar(&from.within, "within", 0, "`time` to wait for other sites (default 2s)")
	return cmd
}

// noInput reports whether the standard input is a terminal or is empty, for example /dev/null.
func noInput(a *cli.App) bool {
	if terminal.IsTerminal(a.In) {
		return true
	}
	in := bufio.NewReader(a.Input())
	a.In = in
	_, err := in.Peek(1)
	return err == io.EOF
}

func quote(ctx context.Context, a *cli.App, sub *submission, from *offersQuery, args []string) error {
	if len(args) == 0 && sub.wrap == "" && noInput(a) { // the question is only about resources, not about a program
		sub.wrap = "true"
	}
	job, err := readUnpaid(a, sub, args)
	if err != nil {
		return err
	}
	s, err := dialFor(ctx, a, job)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	a.Warn("quote", job.Warnings)
	job.Assemble()
	request := market.QuoteRequest{Spec: job.Spec}
	if err := request.Validate(); err != nil {
		return refused(err, job, "")
	}
	switch {
	case len(from.sites) > 0:
	case job.Site != "":
		from.sites = []string{job.Site}
	case job.Spec.Valuation == nil: // only jobs with a valuation get contracts
		from.sites = []string{s.Site}
	}
	if len(from.sites) > 0 {
		return quoteSites(ctx, a, s, from, job)
	}
	reply, err := cli.Call[market.QuoteReply](ctx, s, messages.Auctioneer, market.VerbQuote, request)
	if err != nil {
		return refused(err, job, "")
	}
	return a.Show(reply, func(p *cli.Page) { writeMenu(p, reply, terminal.IsTerminal(a.Out)) })
}

func writeMenu(p *cli.Page, r market.QuoteReply, chart bool) {
	p.Printf("%s of market %s, until %s\n", p.Bold("Quote "+r.Quote), r.Market, p.At(r.Expires))
	t := terminal.NewTable("CONTRACT|COMPLETION|>IN|>PRICE (CREDITS)|>BUDGET|>PROMISED|~").Spare("IN|PROMISED")
	for _, c := range r.Contracts {
		promised := "-" // a price of 0 cannot be scaled
		if c.Price > 0 {
			promised = cli.Price(c.Promised)
		}
		t.Row(c.ID, p.At(c.Completion), p.Between(p.Now, c.Completion), c.Price.String(), c.Budget.String(), promised, remark(&c))
	}
	p.Table(t, "  ")
	if chart {
		writeCurve(p, r.Contracts)
	}
	p.Printf("Accept a contract with \"candor submit --contract ID\" and a budget of at least BUDGET, the most that the job can cost.\n")
	if slices.ContainsFunc(r.Contracts, func(c market.QuotedContract) bool { return c.Price > 0 }) {
		p.Printf("When the job has ended, it pays PRICE multiplied by the worth of its completion and divided by PROMISED.\n")
	}
}

// remark returns a note about a contract. It is short enough for a table on a narrow terminal.
func remark(c *market.QuotedContract) string {
	switch {
	case c.Declared:
		return "as declared"
	case c.Free:
		return "earliest free"
	}
	return ""
}

func writeCurve(p *cli.Page, menu []market.QuotedContract) {
	const height, most = 8, 60
	if len(menu) < 2 {
		return
	}
	first, last := menu[0].Completion, menu[len(menu)-1].Completion
	top := messages.Credits(0)
	for _, c := range menu {
		top = max(top, c.Price)
	}
	if top == 0 || last <= first {
		return
	}
	width := max(10, min(most, p.Columns-20))
	grid := make([][]rune, height+1)
	for i := range grid {
		grid[i] = []rune(strings.Repeat(" ", width+1))
	}
	for _, c := range menu {
		x := int(math.Round(float64(width) * float64(c.Completion-first) / float64(last-first)))
		y := int(math.Round(height * c.Price.Float() / top.Float()))
		mark := '·'
		if c.Declared {
			mark = '◆'
		}
		grid[height-y][x] = mark
	}
	p.Printf("\n")
	for i, row := range grid {
		label := ""
		switch i {
		case 0:
			label = top.String()
		case height:
			label = "0"
		}
		p.Printf("  %*s │%s\n", 12, terminal.Clip(label, 12), strings.TrimRight(string(row), " "))
	}
	p.Printf("  %*s └%s\n", 12, "credits", strings.Repeat("─", width))
	left, right := p.Between(p.Now, first), p.Between(p.Now, last)
	p.Printf("  %*s  %s%s\n\n", 12, "", left, fmt.Sprintf("%*s", max(1, width-len(left)), right))
}
