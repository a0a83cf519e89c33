package ledger

import "github.com/candor-grid/candor/messages"

// setting is the property of an account that a change sets. New settings are added at the end, because changes stay in
// journals.
type setting uint8

const (
	asProject   setting = iota + 1 // text: the title
	memberRole                     // member, number: a money.Role
	memberLimit                    // member, number: credits
	freeze                         // number: a freezer; text: why
	creditLimit                    // number: credits; text: why
)

// change is a change of one setting of an account, as the journal stores it. Which fields it uses depends on the
// setting; see the comment of the setting.
type change struct {
	setting setting
	account messages.Name
	member  messages.Name
	number  int64
	text    string
}

func (c *codec) change(ch *change) {
	octet(c, &ch.setting)
	c.text(&ch.account)
	c.text(&ch.member)
	number(c, &ch.number)
	c.text(&ch.text)
}
