package market

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// TestMain fails if a test changed the value of the variable `nothing`. All jobs with an empty rest share this value.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.DeepEqual(*nothing, rest{}) {
		fmt.Printf("nothing is %+v\n", *nothing)
		code = 1
	}
	os.Exit(code)
}
