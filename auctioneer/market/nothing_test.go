package market

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// TestMain fails if a test changed the variable nothing, the empty rest that all jobs share.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.DeepEqual(*nothing, rest{}) {
		fmt.Printf("nothing is %+v\n", *nothing)
		code = 1
	}
	os.Exit(code)
}
