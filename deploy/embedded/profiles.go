package embedded

import (
	"strings"

	"github.com/candor-grid/candor/messages"
)

// checkProfiles reports the first thing that is wrong with each job profile
// class.
func (c *Config) checkProfiles(ps *Problems) {
	if len(c.Profiles) > messages.MaxProfiles {
		ps.addf("profiles", "%d are more than the limit of %d", len(c.Profiles), messages.MaxProfiles)
	}
	names := map[messages.Name]bool{}
	for i := range c.Profiles {
		path := at("profiles", i)
		ps.unique(path+".name", c.Profiles[i].Name, names)
		if err := c.Profiles[i].Validate(); err != nil {
			field, text, _ := strings.Cut(messages.AsError("", err).Message, ": ")
			ps.addf(path+"."+field, "%s", text)
		}
	}
}
