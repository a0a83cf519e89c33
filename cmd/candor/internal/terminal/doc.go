// Package terminal draws the output of candor's commands: aligned tables, colours, bars, durations in words, and views
// that are redrawn in place. Most of it is pure functions, except for [Screen] and the questions about a file. Without
// colours in [Style], it writes plain text.
package terminal
