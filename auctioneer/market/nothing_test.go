package market

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// TestMain fails if a test had a job change what all jobs share that have nothing of it.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.DeepEqual(*nothing, rest{}) {
		fmt.Printf("nothing is %+v\n", *nothing)
		code = 1
	}
	os.Exit(code)
}
