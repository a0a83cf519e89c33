// Package filter asks a program of the site about each submitted job.
//
// # The program
//
// The program runs on the host of the auctioneer's leader, as the user of the site, in the directory /. It gets the job
// as one JSON object on its standard input, in the form in which `candor job --json` writes a job. The object has only
// what the user wrote; defaults are not filled in yet. Its environment has PATH, CANDOR_SITE and CANDOR_ACCOUNT. It
// must end with exit code 0 and write one of these answers:
//
//   - nothing: the site takes the job as it is;
//   - a complete job: the site takes this job instead, and tells the user what differs;
//   - {"refuse": "a sentence"}: the user gets the sentence.
//
// This example sends jobs that use GPUs to the market gpu:
//
//	#!/bin/sh
//	exec jq 'if any(.stages[]; .gpus) then .market = "gpu" else . end'
//
// # What fails
//
// If the program is missing, ends with another exit code, writes anything else or does not end within 5 s, the job is
// refused: a broken program must not let jobs pass that break a rule of the site. The error tells the operator what to
// do.
//
// # Cost
//
// At most 8 programs run at the same time. A further submission waits. The next program is for the account with the
// fewest running programs. A submission waits for at most 3 s, and must then come again later. It must also come again
// later if 128 submissions, or 32 of its account, run or wait. If 64 run or wait, an account that already has 4 must come
// again later. All users of another site count as one account. Other requests do not wait for the filter. A client that
// repeats its submission while the program runs gets the answer of this program.
package filter
