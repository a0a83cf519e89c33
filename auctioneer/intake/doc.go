// Package intake is the way of a submission into the book, but for who carries it
// there: what is checked, what is held at the bank, and the command that enters the
// job. It is pure. The live site and the site in virtual time go the same way:
// [Rules.Prepare], [Rules.Known], [Submission.Agree], [Submission.Admit],
// [Submission.Hold], [Submission.Command], each of which can be repeated.
package intake
