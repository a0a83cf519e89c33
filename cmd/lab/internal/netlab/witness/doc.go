// Package witness simulates clients of a site. They record what the site tells them, and check later that it was true,
// whatever happened to the site's hosts.
//
// The record has only what the clients know: requests, answers and their times. It is compared with the site's later
// answers, and with a file to which the tasks write. The site's state directories are never read.
//
// # What the clients do
//
// Accounts in groups of three pay one another, read their balances and are granted credits. Workers submit jobs of one
// task, ask for them, repeat submissions and cancel jobs. The operator applies markets and reads them. Each client does
// one thing at a time and repeats a request under its key until the outcome is known.
//
// # What is checked
//
// After a round, when every request is answered and every job has ended:
//
//   - porcupine looks for an order of the requests that explains all answers. It does so for each group of accounts, for
//     each job, and for the markets;
//   - each acknowledged payment and grant is once in the statements of its accounts, and the
//     balances equal the sum of the amounts that were acknowledged since
//     the beginning;
//   - each acknowledged job is listed once under its key, has ended well or was cancelled, was
//     charged once, and if it completed, its task has run.
package witness
