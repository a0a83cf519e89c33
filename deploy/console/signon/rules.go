package signon

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Rules name the provider of OpenID Connect that signs people on to the console, and say which accounts the people
// get.
type Rules struct {
	// Issuer is the address of the provider, as the provider writes it into its tokens, such as
	// https://login.example.org/realms/hpc.
	Issuer string `json:"issuer"`
	// Client is the name of the console at the provider.
	Client string `json:"client"`
	// SecretFile is a file with the secret of this client. Only its owner may read it.
	SecretFile string `json:"secret_file"`
	// Claim is the claim with the name of a person's account. People must not be able to change it themselves. The
	// default is preferred_username.
	Claim string `json:"claim,omitempty"`
	// Accounts maps claims to accounts, for people whose claim is not the name of their account. Example:
	// {ada@example.org: ada}.
	Accounts map[string]messages.Name `json:"accounts,omitempty"`
	// OperatorGroup is a group at the provider. Its members may use the accounts of operators. The provider lists a
	// person's groups in the claim "groups". If OperatorGroup is empty, nobody can sign on as an operator.
	OperatorGroup string `json:"operator_group,omitempty"`
	// Scopes are the scopes that the console asks for, in addition to openid. The default is profile.
	Scopes []string `json:"scopes,omitempty"`
}

const (
	defaultClaim  = "preferred_username"
	emailClaim    = "email"
	verifiedClaim = "email_verified"
	groupsClaim   = "groups"
)

func (r *Rules) claim() string { return cmp.Or(r.Claim, defaultClaim) }

// Validate returns one joined error for all rules that cannot work. Each message begins with the name of a rule.
func (r *Rules) Validate() error {
	if r == nil {
		return nil
	}
	var found []error
	bad := func(format string, args ...any) {
		found = append(found, messages.Errorf(messages.Invalid, format, args...))
	}
	u, err := url.Parse(r.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		bad("issuer: %q is not the address of a provider, like https://login.example.org/realms/hpc", messages.Short(r.Issuer, 64))
	case u.Scheme != "https" && !(u.Scheme == "http" && onLoopback(u.Hostname())):
		bad("issuer: %q does not begin with https://, so others could answer in its place", messages.Short(r.Issuer, 64))
	}
	if r.Client == "" {
		bad("client: is missing; it is the name that the provider gives to the console when you register it")
	}
	if r.SecretFile == "" {
		bad("secret_file: is missing; name a file with the secret that the provider gave to the console")
	}
	for text, account := range r.Accounts {
		if !messages.ValidName(account) {
			bad("accounts: the account %q of %q must be a lower-case letter followed by at most 62 lower-case letters, digits, '-' or '_'", messages.Short(account, 64), messages.Short(text, 64))
		}
	}
	return errors.Join(found...)
}

func onLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r *Rules) host() string {
	u, err := url.Parse(r.Issuer)
	if err != nil {
		return r.Issuer
	}
	return u.Host
}

func (r *Rules) secret() (string, error) {
	info, err := os.Stat(r.SecretFile)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "sign_on.secret_file: %v", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", messages.Errorf(messages.PermissionDenied, "sign_on.secret_file: everybody may read %s (mode %04o); set its mode to 600 with chmod, and write a new secret into the file", r.SecretFile, info.Mode().Perm())
	}
	text, err := os.ReadFile(r.SecretFile)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "sign_on.secret_file: %v", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", messages.Errorf(messages.Invalid, "sign_on.secret_file: %s must hold one line, the secret that the provider gave to the console", r.SecretFile)
	}
	return secret, nil
}

// missing reports whether a claim that the method [Rules.account] needs is absent in a person's claims.
func (r *Rules) missing(claims map[string]any) bool {
	return claims[r.claim()] == nil || r.OperatorGroup != "" && claims[groupsClaim] == nil
}

// account returns the account of the person with these claims, and whether the person signs on as an operator.
func (r *Rules) account(claims map[string]any, operators []messages.Name) (account messages.Name, operator bool, err error) {
	text, _ := claims[r.claim()].(string)
	if text == "" {
		return "", false, messages.Errorf(messages.Invalid, "%s does not say who you are: its answer has no claim %q. Ask the operator of this site to name another claim, or more scopes, in sign_on", r.host(), r.claim())
	}
	if verified := claims[verifiedClaim]; r.claim() == emailClaim && verified != true && verified != "true" {
		return "", false, messages.Errorf(messages.PermissionDenied, "%s has not verified your address %q", r.host(), messages.Short(text, 64))
	}
	account, listed := r.Accounts[text]
	if !listed {
		account = text
	}
	if !messages.ValidName(account) {
		return "", false, messages.Errorf(messages.Invalid, "%s calls you %q, which cannot be an account: an account has lower-case letters, digits, - and _. Ask the operator of this site to name your account in sign_on.accounts", r.host(), messages.Short(text, 64))
	}
	if !slices.Contains(operators, account) {
		return account, false, nil
	}
	if r.OperatorGroup == "" {
		return "", false, messages.Errorf(messages.PermissionDenied, "%s is an operator, and operators do not sign on here: use your file of credentials", account)
	}
	if groups, _ := claims[groupsClaim].([]any); !slices.Contains(groups, any(r.OperatorGroup)) {
		return "", false, messages.Errorf(messages.PermissionDenied, "%s is an operator, and %s does not list you in the group %q", account, r.host(), r.OperatorGroup)
	}
	return account, true, nil
}
