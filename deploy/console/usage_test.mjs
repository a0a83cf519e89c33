// Reads jobs from standard input and prints their sums, by the words of the command line, as the page Usage exports
// them.
import { readFileSync } from "node:fs";
import { csv } from "./src/csv.js";
import { hasEnded, Sums } from "./src/usage.js";

const sums = new Sums(process.argv.slice(2));
for (const job of JSON.parse(readFileSync(0, "utf8"))) if (hasEnded(job, new Date(0), new Date())) sums.add(job);
process.stdout.write(csv(sums.lines()));
