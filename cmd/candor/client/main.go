// Command client is a smaller candor for machines on which people only use a site. It has the commands of users and
// operators, and no server code, so it starts sooner.
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
