package market

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// All jobs whose rest is empty share the variable `nothing`. TestMain fails if a test changed its value.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.DeepEqual(*nothing, rest{}) {
		fmt.Printf("nothing is %+v\n", *nothing)
		code = 1
	}
	os.Exit(code)
}
