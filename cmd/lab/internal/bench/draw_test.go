package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// The picture must be valid XML. For each point of each plot it must have a circle, which must be inside the plot's
// frame.
func TestCurvesAreDrawn(t *testing.T) {
	all := []curve{{"slots", []point{{2, map[string]float64{"tasks_per_second": 800}}, {1024, map[string]float64{"tasks_per_second": 0}}}}, {Over: "nodes"},
		{"waiting", []point{{100, map[string]float64{"heap_bytes": 1e6}}}}}
	picture, circles := xml.NewDecoder(strings.NewReader(draw(all))), 0
	for {
		token, err := picture.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "circle" {
			circles++
		}
	}
	if want := 2 + len(scaleDrawn); circles != want {
		t.Errorf("%d circles, want %d", circles, want)
	}
	for _, v := range []float64{0, 1, 800, 1000} {
		if at := newAxis([]float64{800, 0}, plotHeight).at(v); at < 0 || at > plotHeight {
			t.Errorf("%v is at %v, outside of the frame", v, at)
		}
	}
}
