package runner

import (
	"math"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// userOfAccount as [Config.User] means the user of the same name as the account.
const userOfAccount = "account"

// userRange reads a range of user numbers.
func userRange(s string) (first, last uint64, ok bool) {
	a, b, found := strings.Cut(s, "-")
	first, firstErr := strconv.ParseUint(a, 10, 32)
	last, lastErr := strconv.ParseUint(b, 10, 32)
	return first, last, found && firstErr == nil && lastErr == nil
}

func validUser(s string) error {
	first, last, isRange := userRange(s)
	if isRange && (first == 0 || last < first || last == math.MaxUint32) {
		return messages.Errorf(messages.Invalid, "runner: User %q: must be a range of user numbers above 0, such as 100000-165535", s)
	}
	return nil
}
