package market

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// The roster stores the data of a job that only some markets need in a separate struct of the type rest. All jobs
// without such data share the variable `nothing`. TestMain fails if a test changed the value of this variable.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.DeepEqual(*nothing, rest{}) {
		fmt.Printf("nothing is %+v\n", *nothing)
		code = 1
	}
	os.Exit(code)
}
