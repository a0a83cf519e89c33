package proof

import (
	"github.com/candor-grid/candor/messages"
)

// Domains of what the key of a site's account signs.
const (
	domainKeys     = "candor site keys 1\x00"
	domainExchange = "candor exchange key 1\x00"
)

// KeysText is what the account's key signs to say which keys are the site's.
func KeysText(payload []byte) []byte { return append([]byte(domainKeys), payload...) }

// ExchangeText is what it signs of the key with which sessions are agreed.
func ExchangeText(site messages.Name, exchange []byte) []byte {
	return append([]byte(domainExchange+site+"\x00"), exchange...)
}

// ReadKeys reads what a site says of its keys; account is the public key of its
// account.
func ReadKeys(site messages.Name, account string, payload, signature []byte) (messages.SiteKeys, *messages.Error) {
	var k messages.SiteKeys
	if !verified(account, KeysText(payload), signature) {
		return k, messages.Errorf(messages.Unproven, "the statement of the site's keys is not signed by its account's key %q", clip(account))
	}
	if err := messages.Unmarshal(payload, messages.Msgpack, &k); err != nil || k.Site != site {
		return k, messages.Errorf(messages.Unproven, "the statement of keys is not one of site %q", site)
	}
	return k, nil
}

// CheckExchange makes sure that the key with which sessions are agreed is that
// of the site which issued a claim.
func CheckExchange(token string, site messages.Name, r *messages.TrustReply) error {
	t, err := ReadToken(token)
	if err != nil {
		return err
	}
	if !verified(t.Account, ExchangeText(site, r.Exchange), r.Endorsement) {
		return messages.Errorf(messages.PermissionDenied, "the bank's exchange key is not signed by site %q, which issued the credentials: somebody else answers for it", site)
	}
	return nil
}
