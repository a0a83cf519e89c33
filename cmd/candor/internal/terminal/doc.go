// Package terminal draws what the commands of candor print: aligned tables,
// colours, bars, amounts of time in words, and views that are redrawn in
// place. Everything but [Screen] and the questions about a file is a pure
// function of its arguments, and writes plain text where [Style] says so.
package terminal
