// Package export writes a bank's journal as plain-text accounting, such that
// the ordinary tools read it and find that it balances: hledger, which writes it
// for other tools, such as beancount, and CSV. It is pure: lines in, text out.
//
// # Accounts
//
// Every account of the bank is two: what is available, and what is held for
// jobs. A hold moves credits from the one to the other, a charge from the held
// part to the payee, and what it frees goes back to what is available, so the
// two always add up to the balance.
//
//	bank      hledger
//	ada       assets:ada:available   assets:ada:held
//	$site     assets:$site:…
//	$issuer   equity:$issuer:available
//
// # Amounts
//
// The commodity is CREDIT, with six decimals: the bank's own unit, exactly. In
// hledger every posting asserts the balance that the bank recorded with the
// movement.
//
// # Tags
//
// Each transaction carries number, at (the instant), kind, transfer, and where
// they are not empty by, job, pending (the hold it resolves), member and
// reason, and for each label of the job label-NAME, whose value is "yes" where the label
// has none. hledger ends a tag's value at a comma and finds dates in brackets, so
// there the bytes , : ; % [ ] and what is not ASCII are percent-encoded, as
// in URLs. What moves nothing (an account's
// opening, a change of members, a refusal, an extension) is a comment.
//
// # CSV
//
// The columns are those of columns. To recompute every balance: start each
// account at 0; in each line with status "done" or "lapsed" subtract amount
// from the debit account, add it to the credit account (none if empty), and add
// held to what is reserved on the debit account; after the line they are what
// the four columns of balances say. Amounts are in credits with six decimals. A text that
// begins as a formula of a spreadsheet does (=, +, -, @) has an apostrophe before
// it.
package export
