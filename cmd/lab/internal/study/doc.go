// Package study is what reproductions of papers' tables and figures share: a
// study has a name, runs as a function of a seed and a size, and leaves a page in
// Markdown, its numbers in JSON and its figures in SVG.
package study
