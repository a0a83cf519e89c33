package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

const completionTimeout = time.Second

// completion returns a function that completes words on the command line. It asks the site for the possible words. If
// the site does not answer, it completes nothing.
func (a *App) completion(ask func(ctx context.Context, s *Session) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		s, err := a.Dial(false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Bus.Close()
		s.Timeout = min(s.Timeout, completionTimeout)
		return ask(context.Background(), s), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// CompleteJobs completes the numbers of recent jobs. If active is true, it completes only jobs that have not ended.
func (a *App) CompleteJobs(active bool) cobra.CompletionFunc {
	return a.completion(func(ctx context.Context, s *Session) (words []string) {
		r := job.JobsRequest{Active: active, Limit: 50}
		reply, _ := Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
		for _, j := range reply.Jobs {
			words = append(words, fmt.Sprintf("%v\t%v %s", j.Job, j.State, j.Name))
		}
		return words
	})
}

// CompleteAccounts completes the accounts that the user may see.
func (a *App) CompleteAccounts() cobra.CompletionFunc {
	return a.completion(func(ctx context.Context, s *Session) (words []string) {
		reply, _ := Call[money.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, messages.Empty{})
		for _, account := range reply.Accounts {
			if messages.ValidFreeName(account.Account) {
				words = append(words, fmt.Sprintf("%s\t%s available", account.Account, account.Available.Words()))
			}
		}
		return words
	})
}

// CompleteMarkets completes the markets of the site.
func (a *App) CompleteMarkets() cobra.CompletionFunc {
	return a.completion(func(ctx context.Context, s *Session) (words []string) {
		for _, m := range SiteMarkets(ctx, s) {
			words = append(words, m.Market.Name+"\t"+m.Market.Mechanism)
		}
		return words
	})
}

// CompleteClasses completes the slot classes of the site's markets.
func (a *App) CompleteClasses() cobra.CompletionFunc {
	return a.completion(func(ctx context.Context, s *Session) (words []string) {
		for _, m := range SiteMarkets(ctx, s) {
			for _, class := range m.Market.Classes {
				words = append(words, class+"\tof market "+m.Market.Name)
			}
		}
		return words
	})
}

// SiteMarkets asks for the markets of the site. If there is no answer, it returns no markets.
func SiteMarkets(ctx context.Context, s *Session) []market.MarketStatus {
	reply, _ := Call[market.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	return reply.Markets
}

func JobNumber(argument string) (messages.JobID, error) {
	n, err := strconv.ParseUint(argument, 10, 64)
	if err != nil || n == 0 {
		return 0, Usagef("%q is not the number of a job: \"candor jobs\" lists your jobs", argument)
	}
	return messages.JobID(n), nil
}
