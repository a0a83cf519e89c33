// Package filter asks a program of the site's about each job that is submitted.
//
// # The program
//
// The program runs on the host of the auctioneer's leader, as the user of the site, in the directory /. It gets
// the job as one JSON object on its standard input, as `candor job --json` writes a job, with what the
// user wrote and before defaults are filled in. Its environment has PATH, CANDOR_SITE and CANDOR_ACCOUNT.
// It ends with exit code 0 and writes one of:
//
//   - nothing: the site takes the job as it is;
//   - a job, the whole object: the site takes this job instead, and tells the user what differs;
//   - {"refuse": "a sentence"}: the user gets the sentence.
//
// Example, which sends jobs that use GPUs to their market:
//
//	#!/bin/sh
//	exec jq 'if any(.stages[]; .gpus) then .market = "gpu" else . end'
//
// # What fails
//
// A program that is not there, ends with another exit code, writes anything else or does not end within 5 s
// refuses every job: a rule of the site's must not be left out because its program is broken. The error tells the
// operator what to do. The processes that the program has started end with it.
//
// # Cost
//
// At most 8 programs run at a time, and 64 submissions wait for them or are asked about. The site tells others
// to come again. Nothing but submissions waits.
package filter
