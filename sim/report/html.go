// Package report writes what simulations found as one HTML file that opens by
// itself, offline: charts, tables, and words for those who see no charts.
package report

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/ration-dev/ration/sim/batch"
)

var (
	//go:embed assets/page.html
	pageText string
	//go:embed assets/report.css
	style string
	//go:embed assets/report.js
	script string
	//go:embed assets/uPlot.iife.min.js
	uplot string
	//go:embed assets/uPlot.min.css
	uplotStyle string
	//go:embed assets/uPlot-LICENSE
	licence string
)

// page is what the template shows.
type page struct {
	Title, Summary    string
	Parts             []part
	Policy            string
	UPlotStyle, Style template.CSS
	UPlot, Script     template.JS
	Data              template.JS
	Licence           template.HTML
}

// HTML writes the report. The file loads nothing: its policy allows the two
// scripts and two style sheets in it, by their hashes, and nothing else.
func HTML(w io.Writer, r *batch.Report) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	parts, data := arrange(r)
	encoded, err := json.Marshal(data) // escapes what would end the script
	if err != nil {
		return err
	}
	p := page{
		Title: "Simulation report", Summary: summary(r), Parts: parts,
		UPlotStyle: template.CSS(uplotStyle), Style: template.CSS(style),
		UPlot: template.JS(uplot), Script: template.JS(script), Data: template.JS(encoded),
		Policy:  contentPolicy(),
		Licence: template.HTML("<!-- uPlot 1.6.32\n" + licence + "-->"),
	}
	if len(parts) == 1 {
		p.Title = "Simulation: " + parts[0].Title
	}
	return t.Execute(w, p)
}

func contentPolicy() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + hash(uplot) + " " + hash(script),
		"style-src " + hash(uplotStyle) + " " + hash(style),
		"img-src data:", "base-uri 'none'", "form-action 'none'",
	}, "; ")
}

func summary(r *batch.Report) string {
	text := fmt.Sprintf("%s, %s", plural(r.Finished, "run"), plural(thresholds(r), "threshold"))
	switch {
	case r.Finished < r.Planned:
		text += fmt.Sprintf("; interrupted, %d runs were planned", r.Planned)
	case r.Failed > 0:
		text += fmt.Sprintf(", %d not kept", r.Failed)
	case thresholds(r) > 0:
		text += ", all kept"
	}
	return text + "."
}

func thresholds(r *batch.Report) int {
	n := 0
	for _, s := range r.Scenarios {
		n += len(s.Thresholds)
	}
	return n
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
