package proof

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// Prefixes of the texts that a site's account key signs, so that a signature for one purpose cannot be used for
// another.
const (
	domainKeys     = "candor site keys 1\x00"
	domainExchange = "candor exchange key 1\x00"
	domainFollows  = "candor account key 1\x00"
)

// KeysText returns the text that the account's key signs to confirm a payload in which the site states its keys.
func KeysText(payload []byte) []byte { return append([]byte(domainKeys), payload...) }

// ExchangeText returns the text that the account's key signs to endorse the key for sessions.
func ExchangeText(site messages.Name, exchange []byte) []byte {
	return append([]byte(domainExchange+site+"\x00"), exchange...)
}

// FollowsText returns a text that says that the key `next` follows an earlier key of the site's account. The earlier
// key signs this text.
func FollowsText(site messages.Name, next string) []byte {
	return []byte(domainFollows + site + "\x00" + next)
}

// Successor follows a list of links from the account's first key, and returns the last key. A link is a new key of the
// account, with a signature by the key before it. If a signature is wrong, Successor returns "".
func Successor(site messages.Name, account string, links []messages.Succession) string {
	for _, link := range links {
		if !Verified(account, FollowsText(site, link.Key), link.Signature) {
			return ""
		}
		account = link.Key
	}
	return account
}

// ReadKeys reads a site's statement of its keys. The argument `account` is the first key of the site's account. The
// last key in its succession must have signed the statement.
func ReadKeys(site messages.Name, account string, payload, signature []byte) (messages.SiteKeys, *messages.Error) {
	var k messages.SiteKeys
	if err := wire.Unmarshal(payload, wire.Msgpack, &k); err != nil || k.Site != site {
		return k, messages.Errorf(messages.Unproven, "the statement of keys is not from site %q", site)
	}
	if signer := Successor(site, account, k.Succession); signer == "" || !Verified(signer, KeysText(payload), signature) {
		return k, messages.Errorf(messages.Unproven, "the statement of the site's keys is not signed by its account's key %q, or by a later key of the account", clip(account))
	}
	return k, nil
}

// CheckExchange checks the bank's exchange key, with which the bank makes sessions. The argument `site` names the site
// that issued the client's credentials. A key of this site must have signed the exchange key. Otherwise another party
// answers in the bank's place.
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
