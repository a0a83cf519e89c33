// Package terminal draws the output of candor's commands: aligned tables, colours, bars, durations in words, and
// views that are redrawn in place. Except for [Screen] and the questions about a file, everything is a pure function
// of its arguments. Without colours in [Style], it writes plain text.
package terminal
