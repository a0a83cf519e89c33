package bus

import (
	"strings"

	"github.com/candor-grid/candor/messages"
)

// maxSubject bounds the bytes of a subject.
const maxSubject = 1024

func checkSubject(subject string) error {
	if strings.ContainsAny(subject, "*>") {
		return messages.Errorf(messages.Invalid, "subject %q: \"*\" and \">\" are only for subscribers", clip(subject))
	}
	return checkPattern(subject)
}

func checkPattern(pattern string) error {
	if len(pattern) > maxSubject || strings.ContainsFunc(pattern, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return messages.Errorf(messages.Invalid, "subject %q: must be tokens of printable characters, at most %d bytes", clip(pattern), maxSubject)
	}
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		last := i == len(tokens)-1
		if token == "" || token == ">" && !last || len(token) > 1 && strings.ContainsAny(token, "*>") {
			return messages.Errorf(messages.Invalid, "subject %q: tokens must not be empty; \"*\" and \">\" are whole tokens, and \">\" is the last", clip(pattern))
		}
	}
	return nil
}

func clip(s string) string { return messages.Short(s, 128) }
