package credentials

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// owner returns whose a token is, "" for nobody's.
func owner(t interface{ Region(string) (string, bool) }, token string) string {
	region, ok := t.Region(token)
	if !ok {
		return ""
	}
	return region
}

func expect(t *testing.T, table interface{ Region(string) (string, bool) }, want map[string]string) {
	t.Helper()
	for token, region := range want {
		if got := owner(table, token); got != region {
			t.Errorf("token %q is %q's, want %q", token, got, region)
		}
	}
}

func TestParse(t *testing.T) {
	table, err := ParseFile("f", []byte("# tokens\r\n\nus: a1==\r\n  eu-west : b2 \nus:c3\na:b: d4"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, table, map[string]string{"a1==": "us", "c3": "us", "b2": "eu-west", "d4": "a:b", "": "", "a1": "", "b2 ": ""})
	table, err = ParseList("ENV", "us=a1==, eu=b2,us=c3")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, table, map[string]string{"a1==": "us", "c3": "us", "b2": "eu", "": ""})
	expect(t, new(Table), map[string]string{"": "", "x": ""})
}

// Errors say where, and never what the token is.
func TestParseErrors(t *testing.T) {
	for data, want := range map[string]string{
		"":                                 "f: it has no",
		"# only this\n":                    "f: it has no",
		"us: ok\nhunter2":                  "f:2: want region: token",
		"us: ok\n\n: hunter2":              "f:3: a region's name",
		"us: ok\nus:":                      "f:2: a token is 1 to",
		"us: hunter2 hunter2":              "f:1: a token is made of",
		"us: hunter2\x00":                  "f:1: a token is made of",
		"us: hunter2é":                     "f:1: a token is made of",
		"us: hunter2\neu: hunter2":         `f:2: the token is region "us"'s already`,
		"us\xff: hunter2":                  "f:1: a region's name",
		strings.Repeat("r", 257) + ": t":   "f:1: a region's name",
		"us: " + strings.Repeat("t", 4097): "f:1: a token is 1 to",
	} {
		_, err := ParseFile("f", []byte(data))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", data, err)
		}
	}
	for list, want := range map[string]string{
		"":                      "ENV: entry 1: want region=token",
		"us=t,":                 "ENV: entry 2: want region=token",
		"us=t,hunter2":          "ENV: entry 2: want region=token",
		"us=hunter2,eu=hunter2": "ENV: entry 2: the token is",
		"=hunter2":              "ENV: entry 1: a region's name",
	} {
		_, err := ParseList("ENV", list)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func reload(t *testing.T, f *File, fails bool, reloads, failures int64) {
	t.Helper()
	err := f.Reload()
	if (err != nil) != fails || f.Reloads.Load() != reloads || f.Failures.Load() != failures {
		t.Errorf("%v; %d reloads, %d failures; want %d and %d", err, f.Reloads.Load(), f.Failures.Load(), reloads, failures)
	}
}

// Caught: the table replaced by what a bad file gave; every look counted.
func TestABadFileKeepsTheLastGoodOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if _, err := Open(path); err == nil {
		t.Fatal("a missing file was opened")
	}
	write(t, path, "us: one")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	reload(t, f, false, 0, 0)
	write(t, path, "us: two\nnonsense")
	reload(t, f, true, 0, 1)
	reload(t, f, false, 0, 1)
	expect(t, f, map[string]string{"one": "us", "two": ""})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	reload(t, f, true, 0, 2)
	reload(t, f, false, 0, 2)
	expect(t, f, map[string]string{"one": "us"})
	write(t, path, "us: two")
	reload(t, f, false, 1, 2)
	expect(t, f, map[string]string{"one": "", "two": "us"})
	write(t, path, strings.Repeat("#", maxFile+1))
	reload(t, f, true, 1, 3)
}

// A ConfigMap is swapped as a symlink to a folder; other tools rename.
func TestSwapsAreSeen(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, v), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, v, "tokens"), "us: token"+v)
	}
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "current")); err != nil {
			t.Fatal(err)
		}
	}
	link("1")
	f, err := Open(filepath.Join(dir, "current", "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	link("2")
	reload(t, f, false, 1, 0)
	expect(t, f, map[string]string{"token1": "", "token2": "us"})
	write(t, filepath.Join(dir, "staged"), "us: token3")
	if err := os.Rename(filepath.Join(dir, "staged"), filepath.Join(dir, "2", "tokens")); err != nil {
		t.Fatal(err)
	}
	reload(t, f, false, 2, 0)
	expect(t, f, map[string]string{"token2": "", "token3": "us"})
}

func TestRunReloadsWithinASecondAndEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "us: hunter1")
	synctest.Test(t, func(t *testing.T) {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			f.Run(ctx, slog.New(slog.NewTextHandler(&logged, nil)))
			close(ended)
		}()
		write(t, path, "us: hunter2")
		time.Sleep(Poll + time.Millisecond)
		synctest.Wait()
		expect(t, f, map[string]string{"hunter1": "", "hunter2": "us"})
		write(t, path, "us: hunter2\nhunter3")
		time.Sleep(2 * Poll)
		synctest.Wait()
		expect(t, f, map[string]string{"hunter2": "us"})
		cancel()
		<-ended
		if text := logged.String(); strings.Contains(text, "hunter") || strings.Count(text, "\n") != 2 || !strings.Contains(text, "tokens:2:") {
			t.Errorf("logged %s", text)
		}
	})
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("us: a\neu: b"))
	f.Add([]byte("::\n#\n:x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ParseFile("f", data)
		if err == nil && owner(table, "") != "" {
			t.Fatal("no token is somebody's")
		}
	})
}
