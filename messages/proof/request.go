package proof

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// Header is the name of the NATS header with a proof. Its value is base64url of the [messages.Proof] in msgpack.
const Header = "Candor-Proof"

// Window is the largest permitted difference between the clocks of a request's signer and the bank. It is also how long
// the bank remembers a request that it carried out.
const Window = messages.Duration(3600_000_000_000)

// These texts are parts of the error for a request that was signed at a wrong time. The bank stores this error in its
// replicated state, which must be equal on all replicas. So the words must stay the same in all releases.
const (
	mistimed = "the request was signed at "
	whileNow = ", and it is "
	signAnew = ": sign it again, and set the clock if it is wrong"
)

// RefuseTime returns the refusal of a request whose signing time differs too much from the bank's
// time.
func RefuseTime(signed, now messages.Time) *messages.Error {
	return messages.Errorf(messages.Unproven, "%s%v%s%v%s", mistimed, signed, whileNow, now, signAnew)
}

// Mistimed reads the bank's time from a refusal of RefuseTime. The caller signs again with this time. A bank that lies
// about the time gains little, because it could have carried out the request at once.
func Mistimed(refusal error) (now messages.Time, is bool) {
	e, is := errors.AsType[*messages.Error](refusal)
	if !is || e.Kind != messages.Unproven {
		return 0, false
	}
	_, text, is := strings.Cut(e.Message, mistimed)
	_, text, has := strings.Cut(text, whileNow)
	text, _, ends := strings.Cut(text, signAnew)
	at, err := time.Parse(time.RFC3339Nano, text)
	return messages.TimeOf(at), is && has && ends && err == nil
}

// verbs are the verbs of the bank that need a signed proof in the request. Transfers need none: each transfer has a
// signature of its own, which is called its mark.
var verbs = []string{
	messages.VerbGrant, messages.VerbMember, money.VerbProject, money.VerbPay, money.VerbFreeze,
	money.VerbCredit, money.VerbWithdraw, money.VerbCorrect, messages.VerbSession,
	clearing.VerbPeer, clearing.VerbReserve, clearing.VerbAuthorise, clearing.VerbRevoke, clearing.VerbRemit,
	clearing.VerbAccept, clearing.VerbCharge, clearing.VerbClose, clearing.VerbPart,
	clearing.VerbConfirm,
	clearing.VerbAdopt,
}

// Wants splits the subject of a request, and reports whether the request goes to a bank and needs a proof.
func Wants(subject string) (site messages.Name, verb string, caller messages.Name, wants bool) {
	site, verb, caller = ofBank(subject)
	return site, verb, caller, slices.Contains(verbs, verb)
}

// OfTransfers splits the subject of a request, and reports whether the request is for transfers.
func OfTransfers(subject string) (site, caller messages.Name, is bool) {
	site, verb, caller := ofBank(subject)
	return site, caller, verb == messages.VerbTransfer
}

// ofBank splits the subject of a request to a bank. For other subjects, the result `verb` is "".
func ofBank(subject string) (site messages.Name, verb string, caller messages.Name) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != "candor" || parts[2] != messages.Bank {
		return "", "", ""
	}
	return parts[1], parts[3], parts[4]
}

// statement returns the bytes that the signature of a request covers. Its parts are separated by zero bytes, which no
// name contains.
func statement(site messages.Name, verb string, caller messages.Name, at messages.Time, payload []byte) []byte {
	b := make([]byte, 0, 64+len(payload))
	for _, text := range []string{"candor request 1", site, verb, caller} {
		b = append(append(b, text...), 0)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(b, payload...)
}

// Principal has the credentials of one name. With them, it makes the proofs of this name's requests.
type Principal struct {
	Token string
	Seed  string
}

// Sign returns the proof of a request.
func (p *Principal) Sign(site messages.Name, verb string, caller messages.Name, at messages.Time, payload []byte) (messages.Proof, error) {
	signature, err := p.Signature(statement(site, verb, caller, at, payload))
	if err != nil {
		return messages.Proof{}, err
	}
	return messages.Proof{Token: p.Token, At: at, Signature: signature}, nil
}

// Check reports whether a request was signed with the key in a claim.
func Check(t *Token, site messages.Name, verb string, caller messages.Name, r *messages.SignedRequest) *messages.Error {
	if t.Name != caller {
		return messages.Errorf(messages.Unproven, "the proof is %q's, but the request is made as %q", clip(t.Name), clip(caller))
	}
	if !Verified(t.Key, statement(site, verb, caller, r.Proof.At, r.Payload), r.Proof.Signature) {
		return messages.Errorf(messages.Unproven, "the request does not have a valid signature of %q: the request was altered, or another key signed it", clip(caller))
	}
	return nil
}

// EncodeHeader returns a proof as the value of [Header].
func EncodeHeader(p *messages.Proof) (string, error) {
	data, err := wire.Marshal(p, wire.Msgpack)
	return base64.RawURLEncoding.EncodeToString(data), err
}

// DecodeHeader reads a proof from the value of [Header].
func DecodeHeader(text string) (*messages.Proof, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) > 2*maxToken {
		return nil, messages.Errorf(messages.Invalid, "header %s: is not base64 of a proof", Header)
	}
	p := new(messages.Proof)
	if err := wire.Unmarshal(data, wire.Msgpack, p); err != nil {
		return nil, messages.Errorf(messages.Invalid, "header %s: %v", Header, err)
	}
	return p, nil
}
