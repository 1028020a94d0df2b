package storetest

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Falsify plays histories until one breaks an invariant, and returns what
// broke; "" if none did. It is for tests that break the code on purpose.
func Falsify(t *testing.T, size Size, h Harness) string {
	restore := setFlags(t, size)
	defer restore()
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s"} {
		f := flag.Lookup(name)
		before := f.Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set(name, before) }()
	}
	w := &witness{TB: t}
	run := 0
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine that it is called on
		defer close(done)
		rapid.Check(w, func(rt *rapid.T) {
			run++
			Play(rt, h, fmt.Sprintf("tenant/broken %d", run))
		})
	}()
	<-done
	return strings.Join(w.said, "\n")
}

// witness is a test that keeps what made it fail instead of failing.
type witness struct {
	testing.TB
	said []string
}

func (w *witness) Helper()             {}
func (w *witness) Name() string        { return "falsify" }
func (w *witness) Log(...any)          {}
func (w *witness) Logf(string, ...any) {}
func (w *witness) Failed() bool        { return len(w.said) > 0 }
func (w *witness) Fail()               { w.said = append(w.said, "failed") }
func (w *witness) FailNow()            { w.Fail(); runtime.Goexit() }
func (w *witness) Error(args ...any)   { w.said = append(w.said, fmt.Sprint(args...)) }
func (w *witness) Errorf(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}
func (w *witness) Fatal(args ...any)                 { w.Error(args...) }
func (w *witness) Fatalf(format string, args ...any) { w.Errorf(format, args...) }
