package app

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// maxBudgetLabels is how many budgets have time series of their own; the rest
// are summed as "other". Owners choose names, so their number needs a cap.
const maxBudgetLabels = 200

const otherBudgets = "other"

// latency buckets span a memory lookup to a database that struggles.
var latencyBuckets = []float64{
	.000_01, .000_025, .000_1, .000_25, .001, .002_5, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
}

// durations makes a histogram of seconds with native buckets beside classic
// ones.
func durations(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: latencyBuckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

// newRegistry has what every server reports about its process.
func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ration_build_info", Help: "Always 1, labelled by what is running.",
		ConstLabels: prometheus.Labels{"version": Version(), "go_version": runtime.Version()},
	})
	build.Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// Version is the module's version that was built, or its revision.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}

// series is one metric whose values are read when it is collected.
type series struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func(emit func(v float64, labels ...string))
}

// live is a collector of series that read counters which the core keeps.
type live []series

func (l live) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range l {
		ch <- s.desc
	}
}

func (l live) Collect(ch chan<- prometheus.Metric) {
	for _, s := range l {
		s.values(func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(s.desc, s.kind, v, labels...)
		})
	}
}

// many adds a metric with labels.
func (l *live) many(kind prometheus.ValueType, name, help string, labels []string, values func(emit func(float64, ...string))) {
	*l = append(*l, series{prometheus.NewDesc(name, help, labels, nil), kind, values})
}

// counter adds a metric without labels that only rises.
func (l *live) counter(name, help string, value func() float64) {
	l.many(prometheus.CounterValue, name, help, nil, func(emit func(float64, ...string)) { emit(value()) })
}

// gauge adds a metric without labels.
func (l *live) gauge(name, help string, value func() float64) {
	l.many(prometheus.GaugeValue, name, help, nil, func(emit func(float64, ...string)) { emit(value()) })
}
