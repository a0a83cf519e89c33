package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages/hostlist"
)

// maxHosts is the largest number of hosts to which a list may expand.
const maxHosts = 64 << 10

// expandHosts returns the hosts of a list such as "n[1-3,08],login", in order. Several brackets mean all combinations;
// the last bracket varies fastest.
func expandHosts(list string) (hosts []string, err error) {
	for _, word := range fields(list) {
		some, err := expandWord(word)
		if err != nil {
			return nil, err
		}
		if hosts = append(hosts, some...); len(hosts) > maxHosts {
			return nil, fmt.Errorf("Invalid hostlist: %s: more than %d hosts", clip(list), maxHosts)
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("Invalid hostlist: %q", clip(list))
	}
	return hosts, nil
}

func expandWord(word string) (hosts []string, err error) {
	before, rest, listed := strings.Cut(word, "[")
	if !listed {
		if strings.Contains(word, "]") {
			return nil, fmt.Errorf("Invalid hostlist: %s", clip(word))
		}
		return []string{word}, nil
	}
	inside, after, closed := strings.Cut(rest, "]")
	tails := []string{""}
	if after != "" {
		if tails, err = expandWord(after); err != nil {
			return nil, err
		}
	}
	numbers, ok := expandNumbers(inside)
	if !closed || !ok || len(numbers)*len(tails) > maxHosts {
		return nil, fmt.Errorf("Invalid hostlist: %s", clip(word))
	}
	for _, number := range numbers {
		for _, tail := range tails {
			hosts = append(hosts, before+number+tail)
		}
	}
	return hosts, nil
}

// expandNumbers returns the numbers of a list as in the brackets of a host list: "1-3,08". A number in a range has at
// least as many digits as the first number of the range.
func expandNumbers(list string) (numbers []string, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, span := strings.Cut(part, "-")
		if !span {
			to = from
		}
		low, err := strconv.ParseUint(from, 10, 32)
		high, errHigh := strconv.ParseUint(to, 10, 32)
		if err != nil || errHigh != nil || high < low || high-low >= uint64(maxHosts-len(numbers)) {
			return nil, false
		}
		for n := low; n <= high; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", len(from), n))
		}
	}
	return numbers, true
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// showHosts carries out "show hostnames", "show hostlist" and "show hostlistsorted". These commands only convert the
// text of a list of hosts, so they need no site. The boolean result is false if the words are another command.
func (c *call) showHosts(words []string) (is bool, err error) {
	if len(words) < 2 || words[0] != "show" {
		return false, nil
	}
	kind, list := strings.ToLower(words[1]), ""
	names := strings.HasPrefix("hostnames", kind) && len(kind) > 4
	if !names && kind != "hostlist" && kind != "hostlistsorted" {
		return false, nil
	}
	switch {
	case len(words) > 3:
		return true, fmt.Errorf("too many arguments for keyword: show %s", kind)
	case len(words) == 3:
		list = words[2]
	case names: // Slurm prints the same
		list = c.Getenv("SLURM_NODELIST")
	}
	if list == "" {
		return true, fmt.Errorf("host list is empty")
	}
	hosts, err := expandHosts(list)
	if err != nil {
		return true, err
	}
	if names {
		_, err = fmt.Fprintln(c.Out, strings.Join(hosts, "\n"))
		return true, err
	}
	if kind == "hostlistsorted" {
		hosts = hostlist.Sort(hosts)
	}
	_, err = fmt.Fprintln(c.Out, hostlist.Join(hosts))
	return true, err
}
