// Package spelling finds the word that a misspelt word probably means, and writes numbers with their nouns, such as "3
// tasks".
package spelling

import (
	"strconv"
	"strings"
)

// Nearest returns the known word that an unknown word probably means, or "" if none is near. At most a third of the
// letters of the unknown word, plus one letter, may differ.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		if d := Distance(word, k); d < least || d == least && best == "" {
			best, least = k, d
		}
	}
	return best
}

// Distance returns how many bytes must be inserted, removed or replaced to change a into b (Levenshtein). It takes
// time O(len(a)·len(b)).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// List joins words with commas, as in "east, north". It returns "none" for an empty list.
func List(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// Number writes a number with the right word: "1 job waits", "1,200 jobs wait".
func Number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text + " " + many
}
