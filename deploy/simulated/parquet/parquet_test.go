package parquet

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// TestFileIsAsOthersReadIt: these bytes were read back with another
// implementation, parquet-go 0.32: one row group of the rows (1, 0.5, "a") and
// (-2, 3, "bc").
func TestFileIsAsOthersReadIt(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, []Column{{Name: "n", Int: []int64{1, -2}}, {Name: "x", Double: []float64{0.5, 3}}, {Name: "s", Text: []string{"a", "bc"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b.Bytes()); got != golden {
		t.Errorf("got\n%s", got)
	}
}

func TestColumnsAreAsLong(t *testing.T) {
	err := Write(&bytes.Buffer{}, []Column{{Name: "n", Int: []int64{1, -2}}, {Name: "x", Double: []float64{0.5}}})
	if err == nil || !strings.Contains(err.Error(), "column x has 1 rows") {
		t.Errorf("%v", err)
	}
	if err := Write(&bytes.Buffer{}, nil); err == nil {
		t.Error("a table without columns was written")
	}
}

const golden = "504152311500152015202c150415001506150600000100000000000000feffffffffffffff1500152015202c15041500150615060000000000000000" +
	"e03f00000000000008401500151615162c1504150015061506000001000000610200000062631504194c48057461626c651506001504250018016e00" +
	"150a250018017800150c25001801732500001604191c193c26081c1504192500061918016e150016041642164226080000264a1c150a192500061918" +
	"01781500160416421642264a0000268c011c150c19250006191801731500160416381638268c01000016bc01160400280663616e646f72008a000000" +
	"50415231"
