// Command client is a smaller candor for machines on which people only use a site, such as login nodes. It has only the
// commands of users and operators, and no server code, so it starts sooner.
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
