package messages

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Credits is an amount of money in microcredits. It is written as a decimal
// number of credits with at most six places, in text and in JSON.
type Credits int64

// Credit is one whole credit.
const Credit Credits = 1_000_000

// MaxCredits is the largest amount that a single request may name: a trillion credits. Nine such amounts still fit a
// Credits.
const MaxCredits = 1_000_000_000_000 * Credit

// RoundCredits converts a number of credits to microcredits, rounding half to even. It returns false if x is not
// finite, or larger than MaxCredits in magnitude.
func RoundCredits(x float64) (Credits, bool) {
	micro := math.RoundToEven(x * float64(Credit))
	if math.IsNaN(micro) || math.Abs(micro) > float64(MaxCredits) {
		return 0, false
	}
	return Credits(micro), true
}

// Float returns the amount in credits, for mechanisms, which compute in floating point.
func (c Credits) Float() float64 { return float64(c) / float64(Credit) }

// Words writes the amount with its unit: "1 credit", "12.5 credits".
func (c Credits) Words() string {
	if c == Credit {
		return "1 credit"
	}
	return c.String() + " credits"
}

// String writes the amount in credits, without unnecessary zeros: "12.5".
func (c Credits) String() string {
	sign := ""
	u := uint64(c)
	if c < 0 {
		sign, u = "-", -u
	}
	whole, micro := u/uint64(Credit), u%uint64(Credit)
	if micro == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return sign + strings.TrimRight(fmt.Sprintf("%d.%06d", whole, micro), "0")
}

// ParseCredits reads a decimal number of credits exactly, with or without an exponent (5e-05). More than six decimal
// places, or a magnitude above MaxCredits, is an error.
func ParseCredits(s string) (Credits, error) {
	refuse := func(why string) (Credits, error) {
		return 0, fmt.Errorf("amount %q: %s", Clipped(s), why)
	}
	plain := withoutExponent(s)
	body := strings.TrimPrefix(plain, "-")
	whole, frac, _ := strings.Cut(body, ".")
	if whole == "" || len(frac) > 6 || strings.Trim(whole+frac, "0123456789") != "" {
		return refuse("must be a decimal number of credits with at most six places")
	}
	w, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || w > int64(MaxCredits/Credit) {
		return refuse(fmt.Sprintf("is above the limit of %v credits", MaxCredits))
	}
	f, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	c := Credits(w)*Credit + Credits(f)
	if c > MaxCredits {
		return refuse(fmt.Sprintf("is above the limit of %v credits", MaxCredits))
	}
	if body != plain {
		c = -c
	}
	return c, nil
}

// MarshalJSON writes the amount as a number of credits.
func (c Credits) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads a number of credits, also as a string.
func (c *Credits) UnmarshalJSON(b []byte) (err error) {
	*c, err = ParseCredits(unquote(b))
	return err
}

// withoutExponent rewrites a number with an exponent, such as 1.5e-05, as a number without exponent. Other texts stay
// unchanged.
func withoutExponent(s string) string {
	digits, exponent, has := strings.Cut(strings.ToLower(s), "e")
	by, err := strconv.Atoi(exponent)
	if !has || err != nil || by < -32 || by > 32 {
		return s
	}
	body := strings.TrimPrefix(digits, "-")
	whole, frac, _ := strings.Cut(body, ".")
	if whole == "" || strings.Trim(whole+frac, "0123456789") != "" {
		return s
	}
	const zeros = "00000000000000000000000000000000" // one zero for each step of the largest exponent
	all, point := zeros+whole+frac+zeros, len(zeros)+len(whole)+by
	whole, frac = strings.TrimLeft(all[:point], "0"), strings.TrimRight(all[point:], "0")
	return strings.Repeat("-", len(digits)-len(body)) + "0" + whole + "." + frac
}

// UnmarshalYAML reads a number of credits from the text of the document.
func (c *Credits) UnmarshalYAML(b []byte) error { return c.UnmarshalJSON(b) }

// MarshalYAML writes the amount as a number of credits.
func (c Credits) MarshalYAML() ([]byte, error) { return []byte(c.String()), nil }

// HourlyCredit is the default price: a credit for a slot-hour, in credits for a slot-second. It is rounded to a
// microcredit, so an hour costs 1.0008 credits.
const HourlyCredit Credits = 278

// Price is an amount of credits for a slot-second. A text can give it for a slot-hour: "1/h".
type Price Credits

// ParsePrice reads a price: credits for a slot-second, as in "0.01" or "0.01/s", or credits for a slot-hour, as in
// "36/h". It converts a price per hour to a price per second, and rounds this to whole microcredits. A price above 0
// that rounds to 0 is an error.
func ParsePrice(s string) (Credits, error) {
	amount, unit, timed := strings.Cut(s, "/")
	c, err := ParseCredits(strings.TrimSpace(amount))
	switch unit = strings.TrimSpace(unit); {
	case err != nil || !timed || unit == "s":
		return c, err
	case unit != "h":
		return 0, fmt.Errorf("price %q: must be credits for a slot-second, as in 0.01 or 0.01/s, or for a slot-hour, as in 36/h", Clipped(s))
	}
	const seconds = 3600
	second := (c + seconds/2) / seconds
	if c > 0 && second == 0 {
		return 0, fmt.Errorf("price %q: is less than a microcredit for a second; the least price for an hour is 0.0018/h", Clipped(s))
	}
	return second, nil
}

// Hour writes the price for a slot-hour exactly, in the form of [ParsePrice]: "1.0008/h".
func (p Price) Hour() string {
	// a price for an hour is a multiple of 3,600 microcredits, so it has at most four decimal places
	const decimals = 1e4
	return strconv.FormatFloat(math.Round(3600*Credits(p).Float()*decimals)/decimals, 'f', -1, 64) + "/h"
}

// Words writes the price for a slot-hour exactly, in words: "1.0008 credits an hour".
func (p Price) Words() string { return strings.TrimSuffix(p.Hour(), "/h") + " credits an hour" }

// MarshalJSON writes the price for a slot-second.
func (p Price) MarshalJSON() ([]byte, error) { return Credits(p).MarshalJSON() }

// UnmarshalJSON reads the forms of [ParsePrice], as a number or as a string.
func (p *Price) UnmarshalJSON(b []byte) error {
	c, err := ParsePrice(unquote(b))
	*p = Price(c)
	return err
}

// UnmarshalYAML reads the price from the text of the document.
func (p *Price) UnmarshalYAML(b []byte) error { return p.UnmarshalJSON(b) }

// MarshalYAML writes the price for a slot-second.
func (p Price) MarshalYAML() ([]byte, error) { return Credits(p).MarshalYAML() }

// Short3 writes a number with three significant digits, for example "0.00278" or "36". A number from 1,000 on keeps all
// digits before the decimal point, for example "12346".
func Short3(x float64) string {
	if math.Abs(x) >= 100 {
		return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	}
	text := strconv.FormatFloat(x, 'g', 3, 64)
	rounded, _ := strconv.ParseFloat(text, 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Time is an instant in microseconds since the Unix epoch; zero is "never" or "not yet". Code for states and decisions
// reads no clock; it gets a Time as an argument.
type Time int64

// TimeOf converts a time of the standard library.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std converts to the standard library's time, in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Add returns the instant d later.
func (t Time) Add(d Duration) Time { return t + Time(time.Duration(d)/time.Microsecond) }

// Sub returns the span from u to t.
func (t Time) Sub(u Time) Duration { return Duration(time.Duration(t-u) * time.Microsecond) }

// String writes the instant in RFC 3339 with microseconds, or "-" for zero.
func (t Time) String() string {
	if t == 0 {
		return "-"
	}
	return t.Std().Format("2006-01-02T15:04:05.000000Z")
}

// MarshalJSON writes RFC 3339, or null for zero.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return []byte(strconv.Quote(t.String())), nil
}

// UnmarshalJSON reads RFC 3339 or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	s := unquote(b)
	if s == "null" || s == "" {
		*t = 0
		return nil
	}
	std, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("time %q: write it like 2026-01-31T12:00:00Z", Clipped(s))
	}
	*t = TimeOf(std)
	return nil
}

// MarshalYAML writes the same text as MarshalJSON.
func (t Time) MarshalYAML() ([]byte, error) { return t.MarshalJSON() }

// UnmarshalYAML reads the same forms as UnmarshalJSON.
func (t *Time) UnmarshalYAML(b []byte) error { return t.UnmarshalJSON(b) }

// Earlier returns the earlier of two times. 0 means never, so the other time is earlier.
func Earlier[T Time | Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Duration is a span of time, written like "1h30m" or as a number of seconds.
type Duration time.Duration

// Std converts to the standard library's duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Seconds returns the span in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

// String writes the span like "1h30m0s".
func (d Duration) String() string { return time.Duration(d).String() }

// ParseDuration reads "1h30m", or a bare number of seconds.
func ParseDuration(s string) (Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/1e9 {
			return 0, fmt.Errorf("duration %q: out of range", Clipped(s))
		}
		return Duration(seconds * 1e9), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("duration %q: write it like 1h30m, 90s, or as a number of seconds", Clipped(s))
	}
	return Duration(d), nil
}

// MarshalJSON writes the span as text.
func (d Duration) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(d.String())), nil }

// UnmarshalJSON reads the text forms of ParseDuration, or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) (err error) {
	*d, err = ParseDuration(unquote(b))
	return err
}

// UnmarshalYAML reads a span from the text of the document.
func (d *Duration) UnmarshalYAML(b []byte) error { return d.UnmarshalJSON(b) }

// MarshalYAML writes the duration as text.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(d.String()), nil }

func unquote(b []byte) string {
	s := strings.TrimSpace(string(b))
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// Clipped is [Short] with at most 64 bytes.
func Clipped(s string) string { return Short(s, 64) }
