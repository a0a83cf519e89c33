package mailbox

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestMain runs more tests at a time than there are processors, because most of them wait for an election, a lease or a
// disk. The flag -parallel overrides this.
func TestMain(m *testing.M) {
	flag.Parse()
	if n := runtime.GOMAXPROCS(0); flag.Lookup("test.parallel").Value.String() == strconv.Itoa(n) {
		if err := flag.Set("test.parallel", strconv.Itoa(3*n)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
