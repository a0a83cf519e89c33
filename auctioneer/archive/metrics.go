package archive

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	records, bytes     prometheus.Gauge
	unwritten, damaged prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	const prefix = "candor_auctioneer_archive_"
	make := promauto.With(r)
	return &metrics{
		records:   make.NewGauge(prometheus.GaugeOpts{Name: prefix + "records", Help: "Ended jobs in the archive of this replica."}),
		bytes:     make.NewGauge(prometheus.GaugeOpts{Name: prefix + "bytes", Help: "Bytes of the archive of ended jobs of this replica."}),
		unwritten: make.NewCounter(prometheus.CounterOpts{Name: prefix + "unwritten_total", Help: "Ended jobs whose records could not be written."}),
		damaged:   make.NewCounter(prometheus.CounterOpts{Name: prefix + "damaged_total", Help: "Number of times that a damaged record of an ended job was found."}),
	}
}

func (a *Archive) count() {
	records, size := 0, a.bytes
	for _, s := range a.all() {
		records += s.Records
	}
	if a.open != nil {
		size += a.open.Bytes
	}
	a.metrics.records.Set(float64(records))
	a.metrics.bytes.Set(float64(size))
}
