// Package study has the code that all reproductions of papers share. A study has a name, and is a function of a seed
// and a size. It writes a page in Markdown, its numbers in JSON, and its figures in SVG.
package study
