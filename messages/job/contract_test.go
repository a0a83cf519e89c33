package job

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

func someContract() Contract {
	return Contract{Completion: 1_700_000_000_000_000, Price: 1_250_000, Promised: 99.5, Replica: valuations[0], Surrogate: valuations[4]}
}

func TestContractsCrossTheWire(t *testing.T) {
	c := someContract()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
		data, err := wire.Marshal(&c, f)
		if err != nil {
			t.Fatal(err)
		}
		var got Contract
		if err := wire.Unmarshal(data, f, &got); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
	}
}

func TestBadContracts(t *testing.T) {
	for says, spoil := range map[string]func(*Contract){
		"completion: must be an instant": func(c *Contract) { c.Completion = 0 },
		"price: must be from 0":          func(c *Contract) { c.Price = -1 },
		"price: must be from 0 to":       func(c *Contract) { c.Price = messages.MaxCredits + 1 },
		"promised: must be from 0":       func(c *Contract) { c.Promised = math.NaN() },
		"replica.class: ":                func(c *Contract) { c.Replica = Valuation{} },
		"surrogate.max: ":                func(c *Contract) { c.Surrogate.Max = -1 },
	} {
		c := someContract()
		spoil(&c)
		if err := c.Validate(); messages.KindOf(err) != messages.Invalid || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
