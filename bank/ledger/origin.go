package ledger

import (
	"strconv"
	"strings"
)

// origin says who chose a transfer's identifier. The rules for a transfer depend on its origin.
type origin uint8

const (
	ordinary  origin = iota // chosen by a service or an operator, for the verb Transfers
	granted                 // a transfer from the issuer, requested by an operator
	paid                    // a payment, requested by an owner of the account
	returned                // made by the ledger itself, when a grant expired
	withdrawn               // a transfer back to the issuer, requested by an operator
	corrected               // the reverse of an earlier transfer, requested by an operator
)

// These are the prefixes of the identifiers that the bank makes. After the prefixes of grants, payments and withdrawals
// come the caller and the caller's key. After "$return/" comes the number of a record. After "$correct/" comes the
// identifier of the corrected transfer. No caller may choose such an identifier.
const (
	grantPrefix    = "$grant/"
	payPrefix      = "$pay/"
	returnPrefix   = "$return/"
	withdrawPrefix = "$withdraw/"
	correctPrefix  = "$correct/"
)

var origins = []struct {
	prefix string
	origin origin
}{{grantPrefix, granted}, {payPrefix, paid}, {returnPrefix, returned}, {withdrawPrefix, withdrawn}, {correctPrefix, corrected}}

// ground returns the word for the origin in exports, for example "grant".
func (o origin) ground() string {
	return [...]string{ordinary: "", granted: "grant", paid: "payment", returned: "return", withdrawn: "withdrawal", corrected: "correction"}[o]
}

func originOf(id string) origin {
	if id == "" || id[0] != '$' {
		return ordinary
	}
	for _, o := range origins {
		if strings.HasPrefix(id, o.prefix) {
			return o.origin
		}
	}
	return ordinary
}

func uitoa(n uint64) string { return strconv.FormatUint(n, 10) }
