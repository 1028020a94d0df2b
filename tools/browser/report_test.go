// Package browser opens a simulation's report in headless Chromium and checks
// what only a browser can: that it draws, offline, without a complaint. It is a
// module of its own, so that nobody who builds Ration needs its driver.
package browser

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// witness notes what a page must not do.
type witness struct {
	mu     sync.Mutex
	errors []string
	loads  []string
}

func (w *witness) see(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		w.errors = append(w.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if kind := e.Type.String(); kind == "error" || kind == "warning" {
			w.errors = append(w.errors, "console."+kind)
		}
	case *cdplog.EventEntryAdded: // the policy's refusals among them
		w.errors = append(w.errors, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "file" && u.Scheme != "data" {
			w.loads = append(w.loads, e.Request.URL)
		}
	}
}

// open starts a browser of its own, whose end the test waits for.
func open(t *testing.T, width, height int) (context.Context, *witness) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(width, height),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	w := &witness{}
	if err := chromedp.Listen(ctx, w.see); err != nil {
		t.Fatalf("no browser: install chromium with scripts/install-chromium.sh: %v", err)
	}
	call(ctx, t, network.Enable, network.EnableParams{})
	call(ctx, t, cdplog.Enable, cdp.Empty{})
	call(ctx, t, runtime.Enable, cdp.Empty{})
	return ctx, w
}

func call[P, R any](ctx context.Context, t *testing.T, c cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		t.Fatal(err)
	}
}

// evaluate returns what a script does.
func evaluate[T any](ctx context.Context, t *testing.T, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// show opens the report and waits until its script is done.
func show(ctx context.Context, t *testing.T) {
	t.Helper()
	err := chromedp.Do(ctx, chromedp.Navigate(reportURL(t)), chromedp.WaitReady(chromedp.CSS("html[data-drawn]")))
	if err != nil {
		t.Fatal(err)
	}
}

func reportURL(t *testing.T) string {
	t.Helper()
	path := os.Getenv("RATION_REPORT")
	if path == "" {
		t.Fatal("RATION_REPORT names no report; make test-browser makes one")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

func (w *witness) quiet(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.errors {
		t.Errorf("the browser complains: %s", e)
	}
	for _, u := range w.loads {
		t.Errorf("the page loads %s", u)
	}
}

// drawn counts, per figure, how many pixels its canvas has painted.
const drawn = `[...document.querySelectorAll("figure.chart")].map((f) => {
  const c = f.querySelector("canvas");
  if (!c) return 0;
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 3; i < d.length; i += 4) if (d[i] > 0) n++;
  return n;
})`

func charts(ctx context.Context, t *testing.T) int {
	t.Helper()
	pixels := evaluate[[]int](ctx, t, drawn)
	for i, n := range pixels {
		if n < 500 {
			t.Errorf("chart %d has %d painted pixels", i, n)
		}
	}
	return len(pixels)
}

func screenshot(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("RATION_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReportDraws(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			ctx, w := open(t, 1250, 1000)
			call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			show(ctx, t)
			if n := charts(ctx, t); n < 4 {
				t.Errorf("%d charts", n)
			}
			if n := evaluate[int](ctx, t, `[...document.querySelectorAll("table")].filter((t) => t.tBodies[0].rows.length).length`); n < 4 {
				t.Errorf("%d tables", n)
			}
			if title := evaluate[string](ctx, t, `document.title`); !strings.HasPrefix(title, "Simulation") {
				t.Errorf("title %q", title)
			}
			if n := evaluate[int](ctx, t, `[...document.querySelectorAll("canvas")].filter((c) => !c.getAttribute("aria-label")).length`); n > 0 {
				t.Errorf("%d charts without words", n)
			}
			background := evaluate[string](ctx, t, `getComputedStyle(document.body).backgroundColor`)
			if dark := background == "rgb(20, 23, 26)"; dark != (scheme == "dark") {
				t.Errorf("the background is %s", background)
			}
			screenshot(ctx, t, scheme+".png")
			w.quiet(t)
		})
	}
}

// Choosing a strategy draws its course, in the charts and in their words.
func TestChoosingAStrategy(t *testing.T) {
	ctx, w := open(t, 1250, 1000)
	show(ctx, t)
	const words = `document.querySelector("figure.chart .says").textContent`
	before := evaluate[string](ctx, t, words)
	want := evaluate[string](ctx, t, `(() => {
	  const other = document.querySelector("fieldset.strategies input:not(:checked)");
	  other.click();
	  return other.parentElement.textContent.trim();
	})()`)
	after := evaluate[string](ctx, t, words)
	label := evaluate[string](ctx, t, `document.querySelector("figure.chart canvas").getAttribute("aria-label")`)
	if before == after || !strings.HasPrefix(after, want+":") || !strings.Contains(label, after) {
		t.Errorf("%q, then %q with %s, called %q", before, after, want, label)
	}
	charts(ctx, t)
	w.quiet(t)
}

// On a narrow screen nothing runs out of the page but what can be scrolled.
func TestNarrowScreen(t *testing.T) {
	ctx, w := open(t, 500, 800)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(420, 800)); err != nil {
		t.Fatal(err)
	}
	show(ctx, t)
	if n := evaluate[int](ctx, t, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); n > 0 {
		t.Errorf("the page is %d pixels wider than the screen", n)
	}
	screenshot(ctx, t, "narrow.png")
	w.quiet(t)
}
