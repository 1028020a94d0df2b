package credentials

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Poll is how often Run looks at the file.
const Poll = time.Second

// maxFile bounds the file, in bytes.
const maxFile = 4 << 20

// File is a table kept as a file says. A file that is missing or bad changes
// nothing: the last good one stays in force. Region and the counters are safe
// for concurrent use.
type File struct {
	path  string
	table atomic.Pointer[Table]
	// seen is what the last look found, so that a change is read once, and a
	// fault counted and told once. Only one goroutine reloads.
	seen look

	// Reloads counts changes that took effect, Failures those that did not.
	Reloads, Failures atomic.Int64
}

// look is what was found at the path: a digest of the content, or why there
// is none.
type look struct {
	digest  [sha256.Size]byte
	failure string
}

// Open reads the file at path. It fails if the file is missing or bad: there
// is no last good one yet.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	f.Reloads.Store(0)
	return f, nil
}

// Region returns the region that the token belongs to, and false if it
// belongs to none.
func (f *File) Region(token string) (string, bool) { return f.table.Load().Region(token) }

// Run looks at the file each Poll until ctx ends, and logs changes.
func (f *File) Run(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		before := f.Reloads.Load()
		if err := f.Reload(); err != nil {
			log.Error("the region tokens stay as they were", "error", err)
		} else if f.Reloads.Load() != before {
			log.Info("read the region tokens anew", "file", f.path)
		}
	}
}

// Reload reads the file if its content is another than at the last look. It
// compares content and not times: the file is small, and a rename, a swapped
// symlink and a write within the clock's tick all look alike. An error is
// returned once for each change. Not for concurrent use, nor beside Run.
func (f *File) Reload() error {
	data, err := readBounded(f.path)
	now := look{digest: sha256.Sum256(data)}
	if err != nil {
		now = look{failure: err.Error()}
	}
	if now == f.seen {
		return nil
	}
	f.seen = now
	var table *Table
	if err == nil {
		table, err = ParseFile(f.path, data)
	}
	if err != nil {
		f.Failures.Add(1)
		return err
	}
	f.table.Store(table)
	f.Reloads.Add(1)
	return nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
