package books

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func TestBooksSayWhetherTheyBalance(t *testing.T) {
	for _, x := range []struct {
		reply money.BooksReply
		first string
		has   []string
		lacks []string
	}{
		{money.BooksReply{Balanced: true, Issued: 5 * messages.Credit, Holds: 2, Held: messages.Credit}, "The books balance", []string{"5 credits", "1 credit in 2 holds"}, nil},
		{money.BooksReply{Balanced: true}, "The books balance", nil, []string{"hold"}}, // users are not told the number
		{money.BooksReply{Message: "1 credit is missing\x1b[2J"}, "The books do NOT balance", []string{"1 credit is missing"}, []string{"\x1b"}},
	} {
		p := new(cli.Page)
		writeBooks(p, x.reply)
		text := p.String()
		if first, _, _ := strings.Cut(text, "\n"); first != x.first {
			t.Errorf("the first line is %q, not %q", first, x.first)
		}
		for _, s := range x.has {
			if !strings.Contains(text, s) {
				t.Errorf("%q is not in:\n%s", s, text)
			}
		}
		for _, s := range x.lacks {
			if strings.Contains(text, s) {
				t.Errorf("%q is in:\n%s", s, text)
			}
		}
	}
}

func TestVerificationSaysWhatItDidNotCheck(t *testing.T) {
	const unsigned, unsure, running, quick, keyless = "no checkpoint was signed", "compare this key with the site's key", "not checked: the balances that a running bank states", "leave out --quick", "neither credentials nor keys"
	all := []string{unsigned, unsure, running, quick, keyless}
	for _, x := range []struct {
		name string
		r    verified
		has  []string
	}{
		{"nothing but the chain", verified{}, []string{unsigned, running, quick}},
		{"rules, without a key", verified{Rules: true}, []string{unsigned, running, keyless}},
		{"compared with a bank", verified{Compared: 3}, []string{unsigned, quick}},
		{"signed by a key that nobody vouches for", verified{Checkpoints: 1, Key: "K", Compared: 1}, []string{unsure, quick}},
		{"all of it", verified{Rules: true, Proofs: new(proofs), Checkpoints: 1, Trusted: true, Compared: 1}, nil},
	} {
		p := new(cli.Page)
		writeVerified(p, x.r)
		for _, s := range all {
			wants := false
			for _, h := range x.has {
				wants = wants || h == s
			}
			if strings.Contains(p.String(), s) != wants {
				t.Errorf("%s: %q is told: %v, in\n%s", x.name, s, !wants, p.String())
			}
		}
	}
}
