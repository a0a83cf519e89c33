// Package hostlist writes lists of nodes in the form that Slurm uses: n[1-3,7],login.
package hostlist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Join writes a list of hosts in short form. Consecutive numbers become a range, and names that differ only in their
// last number share brackets.
func Join(hosts []string) string {
	var words []string
	for i := 0; i < len(hosts); {
		stem, _, numbered := split(hosts[i])
		if !numbered {
			words = append(words, hosts[i])
			i++
			continue
		}
		var ranges []string
		count := 0
		for i < len(hosts) {
			s, first, ok := split(hosts[i])
			if !ok || s != stem {
				break
			}
			last, k := first, i+1
			for ; k < len(hosts); k++ {
				if s, next, ok := split(hosts[k]); !ok || s != stem || !follows(last, next) {
					break
				} else {
					last = next
				}
			}
			count += k - i
			if i = k; last == first {
				ranges = append(ranges, first)
			} else {
				ranges = append(ranges, first+"-"+last)
			}
		}
		if count == 1 {
			words = append(words, stem+ranges[0])
		} else {
			words = append(words, stem+"["+strings.Join(ranges, ",")+"]")
		}
	}
	return strings.Join(words, ",")
}

func split(host string) (stem, number string, ok bool) {
	stem = strings.TrimRight(host, "0123456789")
	number = host[len(stem):]
	return stem, number, number != "" && len(number) <= 9
}

// follows reports whether the number `next` comes right after the number `last`, such as 10 after 9. A number with
// leading zeros keeps its width: 010 follows 009.
func follows(last, next string) bool {
	n, _ := strconv.ParseUint(last, 10, 32)
	return fmt.Sprintf("%0*d", len(last), n+1) == next && (len(last) == len(next) || last[0] != '0')
}

// Sort returns the hosts without repetitions, sorted by stem and number.
func Sort(hosts []string) []string {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b string) int {
		stemA, a, _ := split(a)
		stemB, b, _ := split(b)
		return cmp.Or(cmp.Compare(stemA, stemB), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return slices.Compact(hosts)
}
