package mailbox

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestMain has more tests run at a time than there are processors: most of them wait for an
// election, a lease or a disk. What -parallel says goes before.
func TestMain(m *testing.M) {
	flag.Parse()
	if n := runtime.GOMAXPROCS(0); flag.Lookup("test.parallel").Value.String() == strconv.Itoa(n) {
		if err := flag.Set("test.parallel", strconv.Itoa(3*n)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
