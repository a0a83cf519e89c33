// Package terminal draws the output of candor's commands: aligned tables, colours, bars, durations in words, and views
// that are redrawn in place. Without colours in [Style], it writes plain text. Most functions are pure.
package terminal
