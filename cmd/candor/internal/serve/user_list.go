package serve

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

func listCommand() *cobra.Command {
	s := &settings{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list who has credentials",
		Long: `Lists the credentials in the state directory: the name, the role, the time until
which they are valid, and how often credentials of the name were revoked. The
site keeps no list of the credentials that it issued: holders renew their files
and may have copies. Names without a file here are listed if they were revoked.`,
		Example: "  candor user list\n  candor user list --json | jq -r '.users[] | select(.state == \"ended\").name'",
		Args:    cobra.NoArgs,
		RunE: prepared(func(cmd *cobra.Command, _ []string) error {
			c, authority, err := s.authority()
			if err != nil {
				return err
			}
			all, err := holders(filepath.Join(c.State, "creds"), authority)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"users": all})
			}
			t := terminal.NewTable("NAME|ROLE|STATE|ISSUED|EXPIRES|>REVOKED")
			for _, h := range all {
				t.Row(typed(h.Role, h.Name), string(h.Role), h.State, day(h.Issued), day(h.Expires), times(h.Revoked))
			}
			if t.Len() == 0 {
				return say(cmd.OutOrStdout(), "There are no credentials here. Issue credentials with candor user add.\n")
			}
			t.Write(cmd.OutOrStdout(), terminal.Style{}, "")
			return nil
		}),
	}
	keysFlags(cmd, s)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// holder is a user who has credentials, or had some.
type holder struct {
	Name    messages.Name `json:"name"`
	Role    identity.Role `json:"role"`
	State   string        `json:"state,omitempty"` // state of the credentials in the directory; empty means there are none
	Issued  time.Time     `json:"issued,omitzero"`
	Expires time.Time     `json:"expires,omitzero"`
	Revoked int           `json:"revoked"`
}

// holders returns the users whose credentials are in a directory or were revoked.
func holders(dir string, authority *identity.Authority) ([]holder, error) {
	times := authority.Revoked()
	all := []holder{}
	for _, pattern := range []string{"*.creds", "*/*.creds"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if h, ok := holderOf(file, authority); ok {
				h.Revoked = times[identity.Holder{Role: h.Role, Name: h.Name}]
				all = append(all, h)
			}
		}
	}
	for who, n := range times {
		if !slices.ContainsFunc(all, func(h holder) bool { return h.Name == who.Name && h.Role == who.Role }) {
			all = append(all, holder{Name: who.Name, Role: who.Role, Revoked: n})
		}
	}
	slices.SortFunc(all, func(a, b holder) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// holderOf reads a credentials file. It returns false for credentials that the site did not issue.
func holderOf(file string, authority *identity.Authority) (h holder, ok bool) {
	creds, err := os.ReadFile(file)
	if err != nil {
		return h, false
	}
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return h, false
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil || authority.RoleOf(claims.Issuer) == "" {
		return h, false
	}
	h = holder{Name: claims.Name, Role: authority.RoleOf(claims.Issuer), State: "good"}
	if h.Issued, h.Expires, err = identity.Validity(token); err != nil {
		return h, false
	}
	if _, _, err := authority.Issued(creds); err != nil {
		h.State = "revoked"
	} else if !h.Expires.IsZero() && time.Now().After(h.Expires) {
		h.State = "ended"
	}
	return h, true
}

func day(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04")
}

// times returns n as text, or "" for 0.
func times(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
