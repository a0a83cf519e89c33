package client

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

// completionTimeout is how long a shell waits for the site.
const completionTimeout = time.Second

// completions asks the site for words to complete; a site that does not
// answer has none.
func (a *app) completions(ask func(ctx context.Context, s *session) []string) ([]string, cobra.ShellCompDirective) {
	s, err := a.dial(false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.bus.Close()
	s.timeout = min(s.timeout, completionTimeout)
	return ask(context.Background(), s), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeJobs completes the numbers of recent jobs, with active only those
// that have not ended.
func (a *app) completeJobs(active bool) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return a.completions(func(ctx context.Context, s *session) (words []string) {
			r := messages.JobsRequest{Active: active, Limit: 50}
			reply, _ := call[messages.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
			for _, j := range reply.Jobs {
				words = append(words, fmt.Sprintf("%v\t%v %s", j.Job, j.State, j.Name))
			}
			return words
		})
	}
}

// completeAccounts completes the accounts that the user may see.
func (a *app) completeAccounts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.completions(func(ctx context.Context, s *session) (words []string) {
		reply, _ := call[messages.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, messages.Empty{})
		for _, account := range reply.Accounts {
			if messages.ValidName(account.Account) {
				words = append(words, fmt.Sprintf("%s\t%v credits available", account.Account, account.Available))
			}
		}
		return words
	})
}

func (a *app) completeMarkets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.completions(func(ctx context.Context, s *session) (words []string) {
		for _, m := range siteMarkets(ctx, s) {
			words = append(words, m.Market.Name+"\t"+m.Market.Mechanism)
		}
		return words
	})
}

func (a *app) completeClasses(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.completions(func(ctx context.Context, s *session) (words []string) {
		for _, m := range siteMarkets(ctx, s) {
			for _, class := range m.Market.Classes {
				words = append(words, class+"\tof market "+m.Market.Name)
			}
		}
		return words
	})
}

func siteMarkets(ctx context.Context, s *session) []messages.MarketStatus {
	reply, _ := call[messages.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	return reply.Markets
}
