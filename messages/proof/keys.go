package proof

import (
	"github.com/candor-grid/candor/messages"
)

// Domains of what the key of a site's account signs.
const (
	domainKeys     = "candor site keys 1\x00"
	domainExchange = "candor exchange key 1\x00"
	domainFollows  = "candor account key 1\x00"
)

// KeysText is what the account's key signs to say which keys are the site's.
func KeysText(payload []byte) []byte { return append([]byte(domainKeys), payload...) }

// ExchangeText is what it signs of the key with which sessions are agreed.
func ExchangeText(site messages.Name, exchange []byte) []byte {
	return append([]byte(domainExchange+site+"\x00"), exchange...)
}

// FollowsText is what a key of a site's account signs of the key that follows.
func FollowsText(site messages.Name, next string) []byte {
	return []byte(domainFollows + site + "\x00" + next)
}

// Successor follows a succession from the account's first key to the key that speaks for
// the account; "" if a link is not signed by the key before.
func Successor(site messages.Name, account string, links []messages.Succession) string {
	for _, link := range links {
		if !Verified(account, FollowsText(site, link.Key), link.Signature) {
			return ""
		}
		account = link.Key
	}
	return account
}

// ReadKeys reads what a site says of its keys; account is the first key of its account, and
// the last of the succession in the statement signs.
func ReadKeys(site messages.Name, account string, payload, signature []byte) (messages.SiteKeys, *messages.Error) {
	var k messages.SiteKeys
	if err := messages.Unmarshal(payload, messages.Msgpack, &k); err != nil || k.Site != site {
		return k, messages.Errorf(messages.Unproven, "the statement of keys is not one of site %q", site)
	}
	if signer := Successor(site, account, k.Succession); signer == "" || !Verified(signer, KeysText(payload), signature) {
		return k, messages.Errorf(messages.Unproven, "the statement of the site's keys is not signed by its account's key %q, or a key that follows it", clip(account))
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
	signer := Successor(site, t.Account, r.Succession)
	if signer == "" || !Verified(signer, ExchangeText(site, r.Exchange), r.Endorsement) {
		return messages.Errorf(messages.PermissionDenied, "the bank's exchange key is not signed by site %q, which issued the credentials: somebody else answers in its place", site)
	}
	return nil
}
