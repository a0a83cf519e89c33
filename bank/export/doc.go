// Package export writes a bank's journal in formats of plain-text accounting. The usual tools can read it, and check
// that it balances. The formats are hledger, which can convert it for other tools such as beancount, and CSV. It is
// pure: lines in, text out.
//
// # Accounts
//
// Every account of the bank becomes two: available, and held for jobs. A hold moves credits
// from the first to the second; a charge moves them from the held part to the payee; freed
// credits go back. So the two always sum to the balance.
//
//	bank      hledger
//	ada       assets:ada:available   assets:ada:held
//	$site     assets:$site:…
//	$issuer   equity:$issuer:available
//
// # Amounts
//
// The commodity is CREDIT, with six decimals. This is exactly the bank's own unit. In hledger every posting asserts
// the balance that the bank recorded with the movement.
//
// # Tags
//
// Each transaction has the tags number, at (the instant), kind and transfer; if not empty, by,
// job, pending (the hold it resolves), member and reason; and for each label of the job
// label-NAME, with the value "yes" if the label has none. hledger ends a tag's value at a comma
// and finds dates in brackets. So the bytes , : ; % [ ] and all non-ASCII ones are
// percent-encoded, as in URLs. A record that moves no credits (an account is opened, members
// change, a refusal, an extension) is a comment.
//
// # CSV
//
// The variable columns lists the columns. To recompute every balance, start each account at 0. For each line with
// status "done" or "lapsed", subtract amount from the debit account, add it to the credit account (none if empty),
// and add held to the debit account's reserve. The four columns of balances then have the results. Amounts are in
// credits with six decimals. A text that begins like a spreadsheet formula (=, +, -, @) has an apostrophe before it.
package export
