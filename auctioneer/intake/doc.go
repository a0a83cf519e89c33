// Package intake is the way of a submission into the book, without the transport: what is checked,
// what the bank holds, and the command that enters the job. It is pure. The live site and the site
// in virtual time call the same functions in this order: [Rules.Prepare], [Rules.Known],
// [Submission.Agree], [Submission.Admit], [Submission.Hold], [Submission.Command]. Each can be
// repeated.
package intake
