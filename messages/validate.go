package messages

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Distinct checks each name of a list, and returns an error if the list has a name twice.
func Distinct(field string, names []Name, check func(path, name string) error) error {
	seen := make(map[Name]bool, len(names))
	for i, name := range names {
		path := fmt.Sprintf("%s[%d]", field, i)
		if err := check(path, name); err != nil {
			return err
		}
		if seen[name] {
			return Errorf(Invalid, "%s: %q is given twice", path, name)
		}
		seen[name] = true
	}
	return nil
}

// MaxKey is the largest number of bytes of a key that a client chooses.
const MaxKey = 64

// FirstOf makes checks in order until one fails, and returns its error.
func FirstOf(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// InField puts the name of a field before the path in an error.
func InField(field string, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(KindOf(err), "%s.%s", field, Detail(err))
}

// BadName returns the error for a text that is no name.
func BadName(path, name string) error {
	return Errorf(Invalid, "%s: %q is no name; use a lower-case letter, then at most 62 lower-case letters, digits, '-' or '_'", path, Clipped(name))
}

// NeedName returns an error for an invalid or empty name.
func NeedName(path, name string) error {
	if !ValidName(name) {
		return BadName(path, name)
	}
	return nil
}

// CheckName returns an error for an invalid name. An empty name is valid: it means the default.
func CheckName(path, name string) error {
	if name == "" {
		return nil
	}
	return NeedName(path, name)
}

// CheckText returns an error for a text that cannot be passed to a process or shown.
func CheckText(path, s string, limit int) error {
	switch {
	case len(s) > limit:
		return Errorf(TooLarge, "%s: %d bytes are more than the limit of %d", path, len(s), limit)
	case strings.IndexByte(s, 0) >= 0:
		return Errorf(Invalid, "%s: has a NUL byte at %d; remove it", path, strings.IndexByte(s, 0))
	case !utf8.ValidString(s):
		return Errorf(Invalid, "%s: is not valid UTF-8; encode it as UTF-8", path)
	}
	return nil
}

// CheckLine does the same as CheckText, and also refuses control characters, because they would garble a list.
func CheckLine(path, s string, limit int) error {
	if err := CheckText(path, s, limit); err != nil {
		return err
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return Errorf(Invalid, "%s: has a control character at byte %d; write it as one line of text", path, i)
	}
	return nil
}

// BadFreeName returns the error for a text that is no name of a market, class or project.
func BadFreeName(path, name string) error {
	return Errorf(Invalid, "%s: %q is no name; use a letter or digit, then at most 62 letters, digits, '.', '-' or '_'", path, Clipped(name))
}

// CheckFreeName returns an error for an invalid name of a market, class or project. An empty name is valid: it means
// the default.
func CheckFreeName(path, name string) error {
	if name == "" {
		return nil
	}
	return NeedFreeName(path, name)
}

// NeedFreeName returns an error for an invalid or empty name of a market, class or project.
func NeedFreeName(path, name string) error {
	if !ValidFreeName(name) {
		return BadFreeName(path, name)
	}
	return nil
}
