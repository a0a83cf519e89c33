package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
)

type column struct {
	title  string
	width  int // 0 means that the column is as wide as its text
	right  bool
	text   func(*row) string
	before string // text before the field
	after  string // text after the field
}

func (k *column) write(b *strings.Builder, text string) {
	b.WriteString(k.before)
	switch runes := []rune(text); {
	case k.width == 0:
		b.WriteString(text)
	case len(runes) > k.width:
		b.WriteString(string(runes[:k.width]))
	case k.right:
		b.WriteString(strings.Repeat(" ", k.width-len(runes)) + text)
	default:
		b.WriteString(text + strings.Repeat(" ", k.width-len(runes)))
	}
	b.WriteString(k.after)
}

// print writes rows in columns. If `titles` is true, a line of titles comes first.
func (c *call) print(columns []column, rows []row, titles bool) error {
	var b strings.Builder
	if titles {
		for i := range columns {
			columns[i].write(&b, columns[i].title)
		}
		b.WriteByte('\n')
	}
	for r := range rows {
		for i := range columns {
			columns[i].write(&b, oneLine(columns[i].text(&rows[r])))
		}
		b.WriteByte('\n')
	}
	_, err := c.Out.Write([]byte(b.String()))
	return err
}

// oneLine replaces control characters in another user's text. Such characters could end the line, or send commands to
// the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' {
			return '?'
		}
		return r
	}, s)
}

// sorted sorts rows as the option --sort says: letters of fields, with "-" before a letter for the opposite order. The
// field of the first letter matters most.
func sorted(rows []row, spec string, known map[byte]column) error {
	type key struct {
		of   column
		sign int
	}
	var keys []key
	sign := 1
	for i := range len(spec) {
		switch letter := spec[i]; {
		case letter == '-':
			sign = -1
		case strings.IndexByte("+,# ", letter) >= 0:
		case known[letter].text == nil:
			return fmt.Errorf("Invalid sort specification: %c", letter)
		default:
			keys = append(keys, key{known[letter], sign})
			sign = 1
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		for _, k := range keys {
			if n := compare(k.of.text(&a), k.of.text(&b)); n != 0 {
				return n * k.sign
			}
		}
		return 0
	})
	return nil
}

// compare compares two texts of a field: durations and numbers by their values, and other texts by their characters.
func compare(a, b string) int {
	if x, y := secondsOf(a), secondsOf(b); x >= 0 && y >= 0 {
		return cmp.Compare(x, y)
	}
	for a != "" && b != "" {
		x, y := len(a)-len(strings.TrimLeft(a, "0123456789")), len(b)-len(strings.TrimLeft(b, "0123456789"))
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		left, _ := strconv.ParseUint(a[:x], 10, 64)
		right, _ := strconv.ParseUint(b[:y], 10, 64)
		if left != right {
			return cmp.Compare(left, right)
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// secondsOf reads a duration such as 1-02:03:04 or 3:04. The result is −1 for other texts.
func secondsOf(text string) int64 {
	days, clock, long := strings.Cut(text, "-")
	if !long {
		days, clock = "0", text
	}
	total, err := strconv.ParseInt(days, 10, 32)
	parts := strings.Split(clock, ":")
	if err != nil || len(parts) < 2 || len(parts) > 3 || long && len(parts) < 3 {
		return -1
	}
	if total *= 24; len(parts) == 2 {
		total *= 60
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return -1
		}
		if total += int64(n); i < len(parts)-1 {
			total *= 60
		}
	}
	return total
}

// letters reads a format such as "job %.18i %t|%M". Each letter after % names a field.
func letters(format string, known map[byte]column) (columns []column, err error) {
	lead := ""
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			if len(columns) == 0 {
				lead += format[i : i+1]
			} else {
				columns[len(columns)-1].after += format[i : i+1]
			}
			continue
		}
		i++
		k := column{}
		if format[i] == '.' {
			k.right = true
			i++
		}
		from := i
		for i < len(format) && format[i] >= '0' && format[i] <= '9' {
			i++
		}
		k.width, _ = strconv.Atoi(format[from:i])
		if i == len(format) {
			return nil, fmt.Errorf("Invalid job format specification: %q", format)
		}
		field, ok := known[format[i]]
		if !ok {
			return nil, fmt.Errorf("Invalid job format specification: %%%c", format[i])
		}
		k.title, k.text = field.title, field.text
		columns = append(columns, k)
	}
	if len(columns) == 0 {
		columns = []column{{text: func(*row) string { return "" }}}
	}
	columns[0].before = lead
	return columns, nil
}

// owner returns the user and the group of an account for scontrol show job, such as "UserId=ann(1001) GroupId=staff(50)".
// If this machine knows no user of this name, the number is 65534, because programs expect one.
func (c *call) owner(account messages.Name) string {
	if c.owners[account] == "" {
		uid, group, gid := "65534", string(account), "65534"
		if u, err := user.Lookup(string(account)); err == nil {
			uid, group, gid = u.Uid, u.Gid, u.Gid
			if g, err := user.LookupGroupId(u.Gid); err == nil {
				group = g.Name
			}
		} else if u := entry("passwd", string(account)); len(u) == 7 && u[0] == string(account) { // getent also takes a number for a name
			uid, group, gid = u[2], u[3], u[3]
			if g := entry("group", gid); len(g) == 4 {
				group = g[0]
			}
		}
		if c.owners == nil {
			c.owners = map[messages.Name]string{}
		}
		c.owners[account] = fmt.Sprintf("UserId=%s(%s) GroupId=%s(%s)", account, uid, group, gid)
	}
	return c.owners[account]
}

// The function entry returns the fields of a user or group of a directory service. This program cannot ask the service
// itself, because it is linked without the C library.
func entry(table, key string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	line, err := exec.CommandContext(ctx, "getent", table, key).Output()
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(line)), ":")
}
