// Builds the pages from src into dist, or into the directory that is named. The same
// sources and lock file give the same bytes.
import { build } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  entryPoints: [join(here, "src/app.js"), join(here, "src/app.css")],
  outdir: out, bundle: true, minify: true, format: "iife", target: ["es2022"], charset: "utf8", legalComments: "none",
  absWorkingDir: here, logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await cp(join(here, "src", name), join(out, name));

// What is bundled stays under its own licence, which goes with it.
const bundled = ["@nats-io/nats-core", "@nats-io/nkeys", "@nats-io/nuid", "tweetnacl", "uplot"];
const licences = [];
for (const name of bundled) {
  const at = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(at, "package.json"), "utf8"));
  const file = readdirSync(at).find((f) => /^licen[cs]e/i.test(f));
  licences.push(`${name} ${version} (${license})\n\n${(await readFile(join(at, file), "utf8")).trim()}\n`);
}
await writeFile(join(out, "licences.txt"), licences.join("\n----\n\n"));

// From what it was built; a test in Go compares this without node.
const sources = createHash("sha256");
for (const name of ["build.mjs", "package-lock.json", ...walk("src")]) {
  sources.update(name + "\0").update(readFileSync(join(here, name))).update("\0");
}
await writeFile(join(out, "sources.sha256"), sources.digest("hex") + "\n");

function walk(dir) {
  const entries = readdirSync(join(here, dir), { withFileTypes: true });
  return entries.flatMap((e) => (e.isDirectory() ? walk(`${dir}/${e.name}`) : [`${dir}/${e.name}`])).sort();
}
