// Package intake has the steps of a submission on its way into the book: the checks, the transfers for the bank, and
// the command that enters the job. It is pure. The live site and the site in virtual time call the same functions in
// this order: [Rules.Prepare], [Rules.Known], [Submission.Agree], [Submission.Admit], [Submission.Hold],
// [Submission.Command]. Each call can be repeated.
package intake
