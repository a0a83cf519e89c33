package embedded

import (
	"strings"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// checkProfiles reports the first error in each job profile class.
func (c *Config) checkProfiles(ps *Problems) {
	if len(c.Profiles) > jobmsg.MaxProfiles {
		ps.addf("profiles", "%d is above the limit of %d", len(c.Profiles), jobmsg.MaxProfiles)
	}
	names, markets := map[messages.Name]bool{}, map[messages.Name]bool{}
	for i := range c.Markets {
		markets[c.Markets[i].Name] = true
	}
	for i := range c.Profiles {
		path := at("profiles", i)
		if m := c.Profiles[i].Market; m != "" && !markets[m] {
			ps.addf(path+".market", "there is no market %q%s", clip(m), didYouMean(m, sorted(markets)))
			continue
		}
		ps.unique(path+".name", c.Profiles[i].Name, names)
		if err := c.Profiles[i].Validate(); err != nil {
			field, text, _ := strings.Cut(messages.Detail(err), ": ")
			ps.addf(path+"."+field, "%s", text)
		}
	}
}
