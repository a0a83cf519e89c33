// Command client is candor for machines on which people only use a site, such as login
// nodes: the commands of users and operators, without the commands that run a site or study
// markets. It links no server, so that a command starts sooner.
package main

import (
	"os"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client"
	"github.com/candor-grid/candor/cmd/candor/internal/single"
)

func main() {
	time.AfterFunc(single.For, single.End)
	os.Exit(client.Main(os.Args, nil))
}
