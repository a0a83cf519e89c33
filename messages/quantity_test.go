package messages_test

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

func TestAmountsWithAnExponent(t *testing.T) {
	for text, want := range map[string]messages.Credits{
		"5e-05": 50, "5E-05": 50, "-5e-05": -50, "1.5e-5": 15, "1e-06": 1, "12.5e1": 125 * messages.Credit, "1e3": 1000 * messages.Credit,
		"1e+12": messages.MaxCredits, "0e0": 0, "0e-30": 0, "100e-2": messages.Credit, `"5e-05"`: 50,
	} {
		var got messages.Credits
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %v, want %v (%v)", text, got, want, err)
		}
	}
	for _, text := range []string{"1e-07", "1.5e-06", "1e13", "1e30", "1e400", "1e-400", `"e"`, `"1e"`, `"e5"`, `"1e1.5"`, `"1e5e5"`, `"--1e1"`, `"1.2.3e1"`, `"0x1e1"`} {
		var got messages.Credits
		if err := json.Unmarshal([]byte(text), &got); err == nil || got != 0 {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		want := messages.Credits(r.Int64N(1 << r.IntN(50)))
		text := strconv.FormatFloat(float64(want)/float64(messages.Credit), 'e', -1, 64)
		var got messages.Credits
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Fatalf("%s: got %v, want %v (%v)", text, got, want, err)
		}
	}
}

// The error for a wrong JSON value must name no Go type: the client may be in another language.
func TestMisfitsOfJSONNameNoType(t *testing.T) {
	for text, want := range map[string]string{
		`{"job": -1}`:   "job: is -1, must be a whole number from 0 to 18446744073709551615",
		`{"job": 1.5}`:  "job: is 1.5, must be a whole number from 0 to",
		`{"job": "x"}`:  "job: is a string, must be a whole number",
		`{"job": [1]}`:  "job: is a list, must be a whole number",
		`{"job": {}}`:   "job: is an object, must be a whole number",
		`{"job": true}`: "job: is a boolean, must be a whole number",
	} {
		err := wire.Unmarshal([]byte(text), wire.JSON, new(job.JobRequest))
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if err := wire.Unmarshal([]byte(`{"key": 1}`), wire.JSON, new(job.SubmitRequest)); !strings.Contains(err.Error(), "key: is a number, must be a string") {
		t.Errorf("got %v", err)
	}
	if err := wire.Unmarshal([]byte(`{"dry_run": "yes"}`), wire.JSON, new(job.SubmitRequest)); !strings.Contains(err.Error(), "dry_run: is a string, must be true or false") {
		t.Errorf("got %v", err)
	}
}

// A price for an hour must be converted to a price for a second, and rounded to a microcredit. If the price is above 0
// but the result is 0, it must be refused.
func TestAPriceIsOfASecondOrAnHour(t *testing.T) {
	for text, want := range map[string]messages.Credits{
		"0.01": messages.Credit / 100, "0.01/s": messages.Credit / 100, "36/h": messages.Credit / 100, "36 / h": messages.Credit / 100, "1/h": messages.HourlyCredit, "0/h": 0, "0.0018/h": 1, "-3.6/h": -1000 + 1,
	} {
		if got, err := messages.ParsePrice(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "/h", "1/d", "1/h/h", "0.0017/h", "x/h"} {
		if got, err := messages.ParsePrice(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
	var m market.Market
	if err := json.Unmarshal([]byte(`{"reserve":"36/h","default_rate":0.02}`), &m); err != nil || m.ReservePrice() != messages.Credit/100 || m.DefaultRate != messages.Price(messages.Credit/50) {
		t.Errorf("%+v, %v", m, err)
	}
	if text, err := json.Marshal(m.Reserve); string(text) != "0.01" {
		t.Errorf("%s, %v", text, err)
	}
	for price, want := range map[messages.Credits]string{0: "0", 1: "0.0036", messages.HourlyCredit: "1.0008", messages.Credit / 100: "36", 3 * messages.Credit: "10800"} {
		if got := messages.Price(price).Words(); got != want+" credits an hour" {
			t.Errorf("%v a second: %s, want %s", price, got, want)
		}
		if back, err := messages.ParsePrice(messages.Price(price).Hour()); err != nil || back != price {
			t.Errorf("%s an hour: %v, %v", want, back, err)
		}
	}
}
